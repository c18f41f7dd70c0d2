// What the propagation panel computes, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { euler } from "../src/coordinate_frames";
import type { FieldAnswer, RosterEntry, Scene, SoundRay } from "../src/page_protocol";
import { BODY_WIDTH } from "../src/page_protocol";
import { cornersOf, segmentsOf } from "../src/propagation3d";
import { LEAST_MS, NewestRequests } from "../src/propagation_requests";
import { arrivalShares, fieldRange, firstRay, valueAt } from "../src/propagation_section";
import { bounces } from "../src/propagation_table";
import {
  distancesAlong,
  FIRST_VIEW,
  firstEnds,
  isPropagationView,
  bodyPosition,
  rotate,
  transducerOf,
} from "../src/propagation_view";
import { SceneStore } from "../src/scene_store";
import { parseViewLink, viewLink, type ViewState } from "../src/url_state";

function ray(loss: number, more: Partial<SoundRay> = {}): SoundRay {
  const plain = { time: 1, surface: 0, bed: 0, launch: 0, error: 0, blocked: "", followed: true, points: [] };
  return { ...plain, loss, ...more };
}

function field(values: (number | null)[][], unit: string, more: Partial<FieldAnswer> = {}): FieldAnswer {
  const columns = values[0]!.map((_, k) => 10 * k),
    rows = values.map((_, k) => 2 * k);
  return { plane: "vertical", unit, columns, rows, values, bed: [], notes: [], ...more };
}

/** Requests with a clock and answers by hand. */
function line() {
  const sent: { request: string; answer: (text: string) => void; signal: AbortSignal }[] = [],
    taken: string[] = [],
    clock = { ms: 0 },
    requests = new NewestRequests<string, string>(
      (request, signal) => new Promise((answer) => sent.push({ request, answer, signal })),
      (answer) => taken.push(answer),
      () => undefined,
      () => clock.ms,
    ),
    want = (key: string, subject = ""): void => {
      requests.want(key, subject, `request ${key}`);
      requests.step();
    },
    answer = async (text: string): Promise<void> => {
      sent.at(-1)!.answer(text);
      await Promise.resolve();
    };
  return { sent, taken, clock, requests, want, answer };
}

test("one request at a time, and of those that wait only the newest is sent", async () => {
  const { sent, taken, clock, requests, want, answer } = line();
  for (const key of ["1", "2", "3"]) want(key);
  assert.equal(sent.length, 1);
  clock.ms = 100;
  assert.equal(requests.busy, 100);
  await answer("one");
  assert.deepEqual([taken, requests.busy], [["one"], 0]);
  clock.ms = LEAST_MS - 1; // too early
  requests.step();
  assert.equal(sent.length, 1);
  clock.ms = LEAST_MS;
  requests.step();
  assert.deepEqual(
    sent.map((s) => s.request),
    ["request 1", "request 3"],
  );
});

test("the server rests as long as it has worked; what was answered is not requested again", async () => {
  const { sent, clock, want, answer } = line();
  want("1");
  clock.ms = 3000;
  await answer("");
  clock.ms = 5999;
  want("2");
  assert.equal(sent.length, 1);
  clock.ms = 6000;
  want("2");
  assert.equal(sent.length, 2);
  await answer("");
  clock.ms = 60_000;
  want("2");
  assert.equal(sent.length, 2);
});

test("an answer about something else is dropped, and a slow computation is given up", async () => {
  const { sent, taken, clock, requests, want, answer } = line();
  want("1", "lauv");
  want("2", "buoy");
  assert.ok(!sent[0]!.signal.aborted); // it may be about to end
  await answer("of lauv");
  assert.deepEqual(taken, []);
  clock.ms = 1000;
  want("2", "buoy");
  clock.ms = 9000;
  want("3", "buoy");
  assert.ok(!sent[1]!.signal.aborted); // of the same pair: its answer is worth something
  want("4", "boat");
  assert.ok(sent[1]!.signal.aborted);
  await answer("given up");
  requests.step(); // at once
  assert.deepEqual([taken, sent.length], [[], 3]);
  clock.ms = 20_000;
  requests.cancel();
  assert.ok(sent[2]!.signal.aborted);
  await answer("");
  clock.ms = 30_000;
  requests.step();
  assert.equal(sent.length, 3);
});

test("a vector turns with its body", () => {
  const c = Math.cos(0.35),
    s = Math.sin(0.35);
  const [, , heading] = euler(c, 0, 0, s);
  const [n, e, d] = rotate([c, 0, 0, s], [2, 0, 1]);
  assert.ok(Math.abs(Math.atan2(e, n) * (180 / Math.PI) - heading) < 1e-9);
  assert.ok(Math.abs(Math.hypot(n, e) - 2) < 1e-12 && d === 1);
  // pitched up by a right angle: forward points up
  const up = rotate([Math.SQRT1_2, 0, Math.SQRT1_2, 0], [1, 0, 0]);
  assert.ok(Math.abs(up[2] + 1) < 1e-12 && Math.abs(up[0]) < 1e-12);
});

function filled(): SceneStore {
  const store = new SceneStore(),
    entry = (row: number, name: string, model: string): RosterEntry => [row, name, model, "underwater", 1];
  store.scene = {
    sound: { speed: 1500, noise: 60 },
    bodies: [
      { name: "auv", transducer: [0.3, 0, -0.1] },
      { name: "boat", transducer: null },
    ],
    models: { lauv: { transducer: null }, buoy: { transducer: [0, 0, 1] } },
  } as unknown as Scene;
  store.roster([entry(0, "boat", "lauv"), entry(1, "auv", "lauv"), entry(2, "lbl", "buoy")]);
  const bodies = new Float32Array(3 * BODY_WIDTH);
  [0, 1, 2].forEach((row) => bodies.set([row, 10 * row, 5, 3, Math.SQRT1_2, 0, 0, Math.SQRT1_2], row * BODY_WIDTH));
  store.frame({ time: 1, jumps: 0, bodies, signals: new Float32Array() } as never);
  store.now();
  return store;
}

test("the ends of a first visit are bodies with transducers, at their mounts", () => {
  const store = filled();
  assert.deepEqual(firstEnds(store), ["auv", "lbl"]);
  store.chosen = 2;
  assert.deepEqual(firstEnds(store), ["lbl", "auv"]);
  assert.equal(transducerOf(store, 0), null);
  const at = bodyPosition(store, "auv"); // heading east
  assert.ok(typeof at !== "string");
  [10, 5.3, 2.9].forEach((v, k) => assert.ok(Math.abs(at[k]! - v) < 1e-6));
  assert.deepEqual(bodyPosition(store, [1, 2, 3]), [1, 2, 3]);
  assert.match(String(bodyPosition(store, "ghost")), /'ghost' is not in the simulation/);
});

test("points of rays are drawn at their distance along the line between the ends", () => {
  assert.deepEqual(distancesAlong([0, 0, 1, 3, 4, 2, 6, 8, 9], [0, 0, 0], [6, 8, 9]), [0, 5, 10]);
  assert.deepEqual(distancesAlong([7, 0, 1], [5, 0, 0], [5, 0, 9]), [2]); // one above the other
});

test("colours of arrivals: the strongest is brightest, and equal levels look equal", () => {
  assert.deepEqual(arrivalShares([ray(40), ray(60), ray(80), ray(200)]), [1, 0.5, 0, 0]);
  assert.ok(arrivalShares([ray(40), ray(40.5)])[1]! > 0.9);
  assert.deepEqual(arrivalShares([]), []);
  assert.equal(firstRay([ray(1, { blocked: "quay" }), ray(2), ray(3)]), 1);
  assert.equal(firstRay([ray(1, { blocked: "quay" })]), 0);
  assert.equal(bounces(ray(1, { surface: 2, bed: 1 })), "2 s 1 b");
  assert.equal(bounces(ray(1, { blocked: "quay" })), "direct, blocked");
});

test("the colour scale of a field covers its values, and losses at most 60 dB", () => {
  assert.deepEqual(fieldRange(field([[1500, null, 1510]], "m/s")), [1500, 1510]);
  assert.deepEqual(fieldRange(field([[1500, 1500]], "m/s")), [1499.95, 1500.05]);
  assert.deepEqual(fieldRange(field([[41, 52, 63]], "dB")), [40, 65]);
  assert.deepEqual(fieldRange(field([[41, 250]], "dB")), [40, 100]);
  assert.deepEqual(fieldRange(field([[null]], "dB")), [0, 1]);
  const f = field(
    [
      [1, 2],
      [3, null],
    ],
    "dB",
  );
  assert.deepEqual(
    [valueAt(f, 1, 0.9), valueAt(f, 9, 0), valueAt(f, 2, 1.5), valueAt(f, 9, 2), valueAt(f, 90, 0)],
    [1, 2, 3, null, null],
  );
});

test("fields and rays have their place in three.js axes", () => {
  const f = field(
    [
      [1, 2],
      [3, 4],
    ],
    "dB",
  );
  assert.deepEqual(cornersOf(f, [0, 0, 5], [0, 100, 5], 0), [
    [0, 0, 0],
    [0, 10, 0],
    [0, 0, 2],
    [0, 10, 2],
  ]);
  assert.deepEqual(cornersOf({ ...f, plane: "horizontal" }, [0, 0, 5], [9, 9, 5], 7)[3], [2, 10, 7]);
  const { positions, colours } = segmentsOf(
    [ray(1, { points: [1, 2, 3, 4, 5, 6, 7, 8, 9] })],
    [1],
    [
      [0, 0, 0],
      [1, 1, 1],
    ],
  );
  assert.deepEqual(positions, [2, -3, -1, 5, -6, -4, 5, -6, -4, 8, -9, -7]);
  assert.deepEqual([colours.length, Math.min(...colours)], [12, 1]);
});

test("a link keeps the ends of the rays, and a damaged one says so", () => {
  const view = { ...FIRST_VIEW, source: "auv", receiver: [1.5, -2, 10] as [number, number, number] };
  assert.ok(isPropagationView(view));
  for (const wrong of [
    { source: 3 },
    { receiver: [1, 2] },
    { receiver: [1, 2, null] },
    { field: "light" },
    { depth: -1 },
  ])
    assert.ok(!isPropagationView({ ...view, ...wrong }));
  const layout = { version: 1, mode: "free", split: null, show: [], panes: ["propagation"], bounds: [], charts: [] },
    moment = { body: "", time: null, eye: [0, 1, 2], target: [0, 0, 0], middle: [0, 0], scale: 1 },
    whole: ViewState = { ...layout, ...moment, panels: [true, true], height: 0.3, propagation: view };
  const back = parseViewLink(viewLink(whole));
  assert.ok(back && typeof back !== "string");
  assert.deepEqual(back.propagation, view);
  assert.equal(
    parseViewLink(viewLink({ ...whole, propagation: { ...view, depth: NaN } })),
    "the 'propagation' part is invalid",
  );
});
