// Requests to a slow server, of which only the newest of each kind counts: one at a time, at a bounded rate, and the
// server rests at least half of the time.

export interface Answered<Answer> {
  /** What the answer belongs to; two requests with the same key have the same answer. */
  key: string;
  answer: Answer;
}
interface Wanted<Request> {
  key: string;
  request: Request;
}

export const LEAST_MS = 500; // between the beginnings of two requests

export class NewestRequests<Kind extends string, Request, Answer> {
  private readonly wanted = new Map<Kind, Wanted<Request>>();
  private readonly asked = new Map<Kind, string>(); // key of the last request
  private readonly order: Kind[] = []; // kinds in the order of their last requests
  private running: Kind | null = null;
  private began = 0;
  private due = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly send: (request: Request) => Promise<Answer>,
    private readonly take: (kind: Kind, answered: Answered<Answer>) => void,
    /** Called when a delayed request can be sent: call `step` then. */
    private readonly wake: () => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Time since the running request was sent, ms; 0: none is running. */
  get busy(): number {
    return this.running === null ? 0 : this.now() - this.began;
  }

  /** Replace what is wanted of a kind; null: nothing. */
  want(kind: Kind, key: string, request: Request | null): void {
    if (request) this.wanted.set(kind, { key, request });
    else this.wanted.delete(kind);
  }

  private next(): [Kind, Wanted<Request>] | undefined {
    const open = [...this.wanted].filter(([kind, { key }]) => this.asked.get(kind) !== key);
    return open.sort((a, b) => this.order.indexOf(a[0]) - this.order.indexOf(b[0]))[0];
  }

  /** Send the next request, if its time has come. */
  step(): void {
    const next = this.next(),
      begin = this.now();
    if (this.running !== null || !next) return;
    if (begin < this.due) {
      this.timer ??= setTimeout(() => {
        this.timer = null;
        this.wake();
      }, this.due - begin);
      return;
    }
    const [kind, { key, request }] = next;
    this.running = kind;
    this.began = begin;
    this.asked.set(kind, key);
    this.order.splice(0, this.order.length, ...this.order.filter((k) => k !== kind), kind);
    void this.send(request).then((answer) => {
      const end = this.now();
      this.running = null;
      this.due = Math.max(begin + LEAST_MS, end + (end - begin));
      if (this.wanted.has(kind)) this.take(kind, { key, answer });
    });
  }
}
