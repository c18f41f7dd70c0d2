// Requests to a slow server, of which only the newest counts: one at a time, at a bounded rate, and the server rests at
// least half of the time.

export const LEAST_MS = 1000; // between the beginnings of two requests
const SLOW_MS = 2000; // a request that takes longer is given up if it is about something else

interface Wanted<Request> {
  key: string;
  subject: string;
  request: Request;
}

export class NewestRequests<Request, Answer> {
  private wanted: Wanted<Request> | null = null;
  private asked = ""; // key of the last request
  private running: { subject: string; began: number; abort: AbortController } | null = null;
  private due = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly send: (request: Request, signal: AbortSignal) => Promise<Answer>,
    private readonly take: (answer: Answer) => void,
    /** Called when a delayed request can be sent: call `step` then. */
    private readonly wake: () => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Time since the running request was sent, ms; 0: none is running. */
  get busy(): number {
    return this.running ? this.now() - this.running.began : 0;
  }

  /**
   * Replace what is wanted. Two requests with the same key have the same answer; an answer about another subject is
   * dropped.
   */
  want(key: string, subject: string, request: Request): void {
    this.wanted = { key, subject, request };
    if (this.running && this.running.subject !== subject) this.giveUp();
  }

  /** Want nothing. */
  cancel(): void {
    this.wanted = null;
    this.asked = "";
    this.giveUp();
  }

  /** A short computation may end; it costs less than to begin anew. */
  private giveUp(): void {
    if (this.busy > SLOW_MS) this.running!.abort.abort();
  }

  /** Send the next request, if its time has come. */
  step(): void {
    const { wanted } = this,
      began = this.now();
    if (this.running || !wanted || wanted.key === this.asked) return;
    if (began < this.due) {
      this.timer ??= setTimeout(() => {
        this.timer = null;
        this.wake();
      }, this.due - began);
      return;
    }
    const abort = new AbortController(),
      { subject } = wanted;
    this.running = { subject, began, abort };
    this.asked = wanted.key;
    void this.send(wanted.request, abort.signal).then((answer) => {
      const end = this.now();
      this.running = null;
      this.due = abort.signal.aborted ? 0 : Math.max(began + LEAST_MS, end + (end - began));
      if (this.wanted?.subject === subject) this.take(answer);
      this.wake();
    });
  }
}
