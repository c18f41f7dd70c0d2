// What the page computes, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unbrokenSegments } from "../src/cables";
import { readFileSync } from "node:fs";
import { DEEP, scaleColour, VIRIDIS } from "../src/colour_scales";
import { formatNumber, formatTime } from "../src/dom";
import { formatHeading, wrapDegrees, euler, fromThree, toThree } from "../src/coordinate_frames";
import { formatDegrees, formatOffset, depthAt, geodetic, distanceAndBearing } from "../src/geodesy";
import { viewLink, parseViewLink } from "../src/url_state";
import { readableText } from "../src/readable_text";
import { snapshotBefore } from "../src/rewind_slider";
import { normalisedKey, nextSpeed, SPEEDS } from "../src/keyboard";
import { decodeFrame } from "../src/websocket";
import { distanceAndDepth } from "../src/depth_profile";
import { rangeMeasurements } from "../src/acoustic_ranges";
import { smallestCell, gridLines, SeaState } from "../src/sea_state";
import { SceneStore, Track } from "../src/scene_store";
import { circlePoints, distancesAndTimes, parallelLegs, type Point } from "../src/survey_patterns";
import { zoomOf } from "../src/text_size";
import { placeLabel } from "../src/traffic_list";
import { axisRange, axisWidth, displayUnit, tickTexts, formatValue } from "../src/units";
import { changeProblem, crossingSides, fenceChanges, fenceProblem, withChanges } from "../src/fence_rules";
import { BODY_WIDTH, type FenceInfo, INVALID, type ModelInfo, type SignalReception } from "../src/page_protocol";
import { hullGeometry } from "../src/body_shapes";

test("the next speed is the next one, whatever the last was; 0 is the fastest", () => {
  assert.equal(nextSpeed(0, -1, SPEEDS), 30);
  assert.equal(nextSpeed(30, 1, SPEEDS), 0);
  assert.equal(nextSpeed(0, 1, SPEEDS), 0);
  assert.equal(nextSpeed(1, 1, SPEEDS), 2);
  assert.equal(nextSpeed(3, -1, SPEEDS), 2);
  assert.equal(nextSpeed(0.1, -1, SPEEDS), 0.1);
  assert.equal(
    nextSpeed(
      30,
      1,
      SPEEDS.filter((v) => v),
    ),
    30,
  );
});

test("Caps Lock is no Shift", () => {
  const key = (name: string, shiftKey: boolean): string => normalisedKey({ key: name, shiftKey } as KeyboardEvent);
  assert.deepEqual([key("N", false), key("n", true), key("B", true), key("+", true)], ["n", "N", "B", "+"]);
});

test("numbers never push a column off", () => {
  for (const v of [-1e25, 1e300, 123456789, NaN, Infinity, null])
    assert.ok(formatNumber(v, 3).length < 10 && formatValue(v, displayUnit("m")).length < 10);
  assert.equal(formatNumber(-0.001, 1), "0.0");
  assert.equal(formatNumber(12.345, 2), "12.35");
});

test("a count has no decimals, however large", () => {
  assert.deepEqual(
    [15, 1000, 6395].map((v) => formatValue(v, displayUnit(""))),
    ["15", "1000", "6395"],
  );
});

test("ticks are written as they are", () => {
  for (const [at, texts] of [
    [
      [0, 2.5, 5],
      ["0", "2.5", "5.0"],
    ],
    [
      [-0.25, 0, 0.25],
      ["-0.25", "0", "0.25"],
    ],
    [
      [0, 200, 400],
      ["0", "200", "400"],
    ],
    [
      [0.1, 0.2, 0.30000000000000004],
      ["0.1", "0.2", "0.3"],
    ],
    [
      [1.25e-3, 2.5e-3],
      ["0.00125", "0.00250"],
    ],
    [
      [-1e-17, 1],
      ["0", "1"],
    ],
    [
      [null, 10, 20],
      ["", "10", "20"],
    ],
    [
      [5e4, 1e5],
      ["50000", "1.0e+5"],
    ],
  ] as [(number | null)[], string[]][])
    assert.deepEqual(tickTexts(at), texts);
});

test("places of the world: one minute north is a nautical mile, the bed between its points, legs of a measure", () => {
  const [lat, lon] = geodetic([41.0, -8.0], 1852.0, 0, 0);
  assert.ok(Math.abs((lat - 41.0) * 60 - 1) < 0.003 && Math.abs(lon + 8.0) < 1e-12);
  assert.equal(formatDegrees(-8.5, "EW"), "8°30.0000'W");
  assert.equal(formatDegrees(41.5, "NS"), "41°30.0000'N");
  const bed = {
    north: [0, 10],
    east: [0, 10],
    depth: [
      [1, 3],
      [5, 7],
    ],
  };
  assert.equal(depthAt(bed, 5, 5), 4);
  assert.equal(depthAt(bed, 10, 10), 7);
  assert.equal(depthAt(bed, 11, 0), null);
  assert.equal(
    depthAt(
      {
        ...bed,
        depth: [
          [1, null],
          [5, 7],
        ],
      },
      1,
      9,
    ),
    null,
  );
  assert.deepEqual(distanceAndBearing([0, 0], [0, 5]), [5, 90]);
});

test("axes go to three's and back; angles of a quaternion", () => {
  assert.deepEqual(fromThree(...toThree(1, 2, 3)), [1, 2, 3]);
  const [, , heading] = euler(Math.SQRT1_2, 0, 0, -Math.SQRT1_2);
  assert.ok(Math.abs(wrapDegrees(heading) - 270) < 1e-9);
});

test("a way is thinned, and found by time", () => {
  const track = new Track();
  for (let k = 0; k < 20000; k++) track.append(k, k, 0, 0);
  assert.ok(track.time.length <= 4001 && track.time[0] === 0);
  const n = track.until(track.time[10]!);
  assert.equal(n, 11);
});

function frame(time: number, rows: number[][]): ArrayBuffer {
  const data = new ArrayBuffer(64 + 4 * BODY_WIDTH * rows.length),
    v = new DataView(data);
  v.setUint32(0, 0x31465657, true);
  v.setFloat64(8, time, true);
  v.setUint32(48, rows.length, true);
  new Float32Array(data, 64).set(rows.flat());
  return data;
}

test("a body whose state is no state stays where it was; a frame of other bytes is none", () => {
  const store = new SceneStore();
  store.frame(decodeFrame(frame(1, [[7, 1, 2, 3, 1, 0, 0, 0, 0.5, 0]]))!);
  store.frame(decodeFrame(frame(2, [[7, NaN, NaN, NaN, NaN, NaN, NaN, NaN, NaN, INVALID]]))!);
  store.now();
  assert.deepEqual([...store.ned], [1, 2, 3]);
  assert.equal(store.condition[0], INVALID);
  assert.equal(store.track(7).time.length, 1);
  assert.equal(decodeFrame(frame(3, []).slice(0, 60)), null);
  assert.equal(decodeFrame(new ArrayBuffer(64)), null);
});

test("the picture settles at the time of the last frame, also where the difference of two times is rounded", () => {
  const store = new SceneStore();
  store.frame(decodeFrame(frame(0.18, [[7, 1, 2, 3, 1, 0, 0, 0, 0.5, 0]]))!);
  store.frame(decodeFrame(frame(0.68, [[7, 1, 2, 3, 1, 0, 0, 0, 0.5, 0]]))!);
  assert.notEqual(0.18 + (0.68 - 0.18), 0.68);
  const clock = performance.now.bind(performance);
  performance.now = () => clock() + 10_000;
  try {
    store.now();
  } finally {
    performance.now = clock;
  }
  assert.ok(store.settled());
});

test("legs lie over an area, there and back, no point of it farther from one than half the spacing", () => {
  const area: Point[] = [
    [0, 0],
    [100, 0],
    [100, 45],
    [0, 45],
  ];
  assert.deepEqual(parallelLegs(area, 15, 0), [
    [0, 7.5],
    [100, 7.5],
    [100, 22.5],
    [0, 22.5],
    [0, 37.5],
    [100, 37.5],
  ]);
  const across = parallelLegs(area, 25, 90);
  assert.equal(across.length, 8);
  for (const [n, e] of across) assert.ok((Math.abs(e) < 1e-9 || Math.abs(e - 45) < 1e-9) && n > 0 && n < 100);
  const hollow: Point[] = [
    [0, 0],
    [60, 0],
    [60, 60],
    [40, 60],
    [40, 20],
    [20, 20],
    [20, 60],
    [0, 60],
  ]; // two prongs to the east
  for (const heading of [0, 33, 90]) {
    const found = parallelLegs(hollow, 7, heading);
    assert.ok(found.length >= 2 && found.length % 2 === 0);
    for (let k = 0; k < found.length; k += 2) {
      const [n, e] = [(found[k]![0] + found[k + 1]![0]) / 2, (found[k]![1] + found[k + 1]![1]) / 2];
      assert.ok(!(n > 20 && n < 40 && e > 20) && n >= 0 && n <= 60, "the middle of a leg is inside");
    }
  }
  assert.deepEqual(
    [parallelLegs(area, 0.01, 0), parallelLegs(area, 0, 0), parallelLegs(area.slice(0, 2), 5, 0)],
    [[], [], []],
  );
});

test("a circle comes back; a journey takes what its legs do", () => {
  const around = circlePoints([10, 20], 5, 8);
  assert.equal(around.length, 9);
  for (const [n, e] of around) assert.ok(Math.abs(Math.hypot(n - 10, e - 20) - 5) < 1e-9);
  assert.deepEqual(
    distancesAndTimes(
      [0, 0, 0],
      [
        [3, 4, 0, 1],
        [3, 4, 12, 2],
        [3, 4, 12, 0],
      ],
    ),
    [
      { distance: 5, time: 5 },
      { distance: 17, time: 11 },
      { distance: 17, time: Infinity },
    ],
  );
});

test("a link holds a view, and nothing else is one", () => {
  const view = {
    version: 1,
    mode: "chart",
    split: 0.4,
    body: "a & b #1",
    time: 12.5,
    panes: ["sound", "charts"],
    bounds: [0.3],
    height: 0.4,
    charts: [],
    show: ["labels"],
    panels: [true, false] as [boolean, boolean],
    eye: [1, 2, 3],
    target: [0, 0, 0],
    middle: [-50, 20],
    scale: 2.5,
  };
  assert.deepEqual(parseViewLink(viewLink(view)), view);
  for (const none of ["", "#configure"]) assert.equal(parseViewLink(none), null);
  const { version: _, ...older } = view;
  for (const [wrong, message] of [
    ["#view=", "it is incomplete"],
    ["#view=%7B%7D", "the layout has version 0, but this page reads version 1"],
    ["#view=null", "it does not contain a layout"],
    [viewLink(view).slice(0, -9), "it is incomplete"],
    [viewLink({ ...view, scale: NaN }), "a number in the view is missing or invalid"],
    [viewLink({ ...view, eye: [1, 2] }), "a number in the view is missing or invalid"],
    [viewLink({ ...view, bounds: [3] }), "the 'bounds' part is missing or invalid"],
    [viewLink({ ...view, charts: [{ lines: [] }] }), "the 'charts' part is missing or invalid"],
    [viewLink(older as typeof view), "the layout has version 0, but this page reads version 1"],
  ] as const)
    assert.equal(parseViewLink(wrong), message, wrong);
});

test("a profile is the way as it was run", () => {
  assert.deepEqual(distanceAndDepth([0, 0, 1, 3, 4, 2, 3, 4, 5, 6, 8, 6], 3), [
    [0, 1],
    [5, 2],
    [5, 5],
  ]);
});

test("two-way and one-way ranges are compared with the true ranges", () => {
  const heard = {
    receiver: 1,
    source: 2,
    outcome: 0,
    kind: 3,
    query: 7,
    id: 8,
    time: 5,
    measured: 10.5,
    one_way: null,
    distance: 10,
    azimuth: Math.PI / 2,
    elevation: null,
  };
  const events = [
    heard,
    { ...heard, kind: 0, query: 0, time: 6, measured: null, one_way: 21 },
    { ...heard, kind: 2, query: 0, time: 7, measured: null, one_way: 21, distance: 20 },
    { ...heard, receiver: 3 },
    { ...heard, outcome: 2 },
  ] as unknown as SignalReception[];
  const asked = new Map([["7:2", 12]]),
    of = (what: "range" | "error" | "azimuth"): [number, number | null, boolean][] =>
      rangeMeasurements(events, 1, what, 0, asked).map((p) => [p.value, p.truth, p.one]);
  assert.deepEqual(of("range"), [
    [10.5, 11, false],
    [21, null, true],
    [21, 20, true],
  ]);
  assert.deepEqual(of("error"), [
    [-0.5, 0, false],
    [1, 0, true],
  ]);
  assert.deepEqual(
    of("azimuth").map(([v]) => v),
    [90, 90, 90],
  );
  assert.equal(rangeMeasurements(events, 1, "range", 6.5, asked).length, 1);
});

const WAVES = [
  [0.3, 0.8, 0.06, 0.02, 1.0],
  [0.1, 1.6, 0.2, -0.16, 4.0],
  [0.05, 2.4, -0.1, 0.57, 2.5],
];

test("the sea at crossings of lines is the sum over its components there", () => {
  const sea = new SeaState(WAVES),
    north = gridLines(40, 0.5, 10, 2000),
    east = gridLines(-7, 0.5, 10, 2000),
    up = new Float32Array(21 * 21);
  sea.fill(3600.25, north, east, up);
  for (const [r, c] of [
    [10, 10],
    [8, 12],
    [11, 9],
  ] as const) {
    let sum = 0;
    for (const [a, w, n, e, p] of WAVES as [number, number, number, number, number][])
      sum += a * Math.cos(w * 3600.25 - n * north[r]! - e * east[c]! + p);
    assert.ok(Math.abs(up[r * 21 + c]! - sum) < 1e-6);
    assert.ok(Math.abs(sea.at(3600.25, north[r]!, east[c]!) - sum) < 1e-12);
  }
  assert.equal(up[0], 0, "no wave can be seen between lines that lie so far apart");
  assert.ok(Math.abs(sea.height - 4 * Math.sqrt((0.09 + 0.01 + 0.0025) / 2)) < 1e-12);
});

test("lines lie close around the middle and reach to the horizon", () => {
  const north = gridLines(5, 2, 20, 3000),
    steps = [...north].slice(1).map((v, k) => v - north[k]!);
  assert.deepEqual([north[20], north[0], north[40]], [5, 5 - 3000, 5 + 3000]);
  assert.ok(steps.slice(13, 27).every((s) => Math.abs(s - 2) < 1e-9) && steps.every((s) => s > 0));
  const sea = new SeaState(WAVES);
  assert.ok(
    Math.abs(smallestCell(sea, 10) - sea.shortest / 8) < 1e-12 && smallestCell(sea, 2000) > 10,
    "an eighth of the shortest wave from near by",
  );
});

test("texts stand below each other where there is no room", () => {
  const taken: [number, number, number][] = [];
  assert.deepEqual(
    [placeLabel(taken, 10, 50, 80), placeLabel(taken, 30, 52, 80), placeLabel(taken, 200, 50, 80)],
    [
      [10, 50],
      [30, 66],
      [200, 50],
    ],
  );
});

test("a line is drawn from node to node, without the segment that broke", () => {
  const points = [0, 0, 0, 1, 0, 5, 2, 0, 9, 3, 0, 9],
    line = { name: "t", tension: 1, points };
  assert.deepEqual(unbrokenSegments({ ...line, broken: -1 }), [
    [
      [0, 0, 0],
      [1, 0, 5],
    ],
    [
      [1, 0, 5],
      [2, 0, 9],
    ],
    [
      [2, 0, 9],
      [3, 0, 9],
    ],
  ]);
  assert.deepEqual(unbrokenSegments({ ...line, broken: 1 }), [
    [
      [0, 0, 0],
      [1, 0, 5],
    ],
    [
      [2, 0, 9],
      [3, 0, 9],
    ],
  ]);
});

test("offsets, headings and times are written as an operator writes them", () => {
  assert.deepEqual(
    [formatOffset(-200, "NS"), formatOffset(400, "EW"), formatOffset(-400, "EW"), formatOffset(0, "NS")],
    ["200 S", "400 E", "400 W", "0 N"],
  );
  assert.deepEqual([formatOffset(-78.83, "NS", 1), formatOffset(-0.04, "EW", 1)], ["78.8 S", "0.0 E"]);
  assert.deepEqual(
    [0, 7.4, 359.4, 359.6, -90, 360].map((d) => formatHeading(d)),
    ["000", "007", "359", "000", "270", "000"],
  );
  assert.deepEqual(
    [359.96, 5.25, null].map((d) => formatHeading(d, 1)),
    ["000.0", "005.3", "–"],
  );
  assert.deepEqual(
    [formatTime(59.97), formatTime(629.2), formatTime(657, 0), formatTime(3599.6, 0)],
    ["1:00.0", "10:29.2", "10:57", "1:00:00"],
  );
});

test("a rewind goes to the last snapshot before a time", () => {
  const times = [5, 6, 7];
  assert.deepEqual(
    [9, 7, 6.99, 5.2, 1].map((t) => snapshotBefore(times, t)),
    [7, 7, 6, 5, 5],
  );
  assert.equal(snapshotBefore([], 1), null);
});

test("a track before a time is another track", () => {
  const track = new Track();
  for (let t = 0; t < 9; t++) {
    track.append(t, t, 2 * t, 5);
    track.believe(t + 0.5, t, 2 * t, 5);
  }
  const earlier = track.before(3);
  assert.notEqual(earlier, track);
  assert.deepEqual(
    [earlier.time, earlier.ned],
    [
      [0, 1, 2, 3],
      [0, 0, 5, 1, 2, 5, 2, 4, 5, 3, 6, 5],
    ],
  );
  assert.deepEqual([earlier.believedTime, earlier.believed.length], [[0.5, 1.5, 2.5], 9]);
  assert.equal(track.time.length, 9);
});

test("texts of the server have the page's formats", () => {
  assert.deepEqual(
    [
      "paused at 1738.572 s",
      "paused at 401.13 s",
      "fault 'lost' in 'port' of 'boat' starting at 12.000 s",
      "mission: mission; waypoint 3 of 8; to 100.0 m north, -120.5 m east",
      "mission: loiter; to -3.0 m north, 4.0 m east",
      "weather set: peak 1.2 rad/s",
      "returned from 65.200 s to 3.000 s",
    ].map(readableText),
    [
      "paused at 28:58.6",
      "paused at 6:41.1",
      "fault 'lost' in 'port' of 'boat' starting at 0:12.0",
      "mission; waypoint 3 of 8; to 100.0 N, 120.5 W",
      "mission: loiter; to 3.0 S, 4.0 E",
      "weather set: peak 1.2 rad/s",
      "returned from 1:05.2 to 0:03.0",
    ],
  );
});

test("a chart never shows noise as if it were a signal", () => {
  const [low, high] = axisRange(0, 2e-4, "m");
  assert.ok(high - low >= 0.5 && low < 0 && high > 2e-4);
  assert.ok(axisRange(1.124, 1.128, "m/s")[1] - axisRange(1.124, 1.128, "m/s")[0] >= 0.1);
  assert.deepEqual(axisRange(0, 100, "m"), [-8, 108]);
  assert.deepEqual(axisRange(null, null, "m"), [0, 1]);
  assert.ok(axisWidth(["0", "0.0002"]) > axisWidth(["0", "20"]) + 20, "as wide as the longest label");
});

// Colours as a deuteranope sees them (Machado, Oliveira and Fernandes 2009, severity 1), in CIE L*a*b* (D65).
const DEUTERANOPIA = [
  [0.367322, 0.860646, -0.227968],
  [0.280085, 0.672501, 0.047413],
  [-0.01182, 0.04294, 0.968881],
];
const XYZ = [
  [0.4124, 0.3576, 0.1805],
  [0.2126, 0.7152, 0.0722],
  [0.0193, 0.1192, 0.9505],
];
const times = (m: number[][], v: number[]): number[] => m.map((r) => r.reduce((s, a, k) => s + a * v[k]!, 0));
function lab(colour: number[], blind: boolean): number[] {
  const linear = colour.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)),
    seen = blind ? times(DEUTERANOPIA, linear).map((v) => Math.min(Math.max(v, 0), 1)) : linear;
  const [x, y, z] = times(XYZ, seen).map((v, k) => {
    const t = v / [0.9505, 1, 1.089][k]!;
    return t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
  }) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const apart = (a: number[], b: number[], blind: boolean): number => {
  const [p, q] = [lab(a, blind), lab(b, blind)];
  return Math.hypot(...p.map((v, k) => v - q[k]!));
};
const rgb = (hex: string): number[] => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);

test("colours of bodies, and those of heard and lost, differ for a deuteranope too", () => {
  const css = readFileSync("src/style.css", "utf8"),
    inThemes = (name: string): string[] => [...css.matchAll(new RegExp(`--${name}: (#\\w{6})`, "g"))].map((m) => m[1]!),
    bodies = Array.from({ length: 8 }, (_, k) => inThemes(`body-${k}`)),
    [good, bad] = ["good", "bad"].map(inThemes);
  for (const theme of [0, 1])
    for (const blind of [false, true])
      bodies.forEach((a, k) => {
        for (const b of bodies.slice(k + 1))
          assert.ok(apart(rgb(a[theme]!), rgb(b[theme]!), blind) > 20, `${a[theme]} ${b[theme]} ${blind}`);
      });
  // lines and dots stand out from the panels of their theme (WCAG 2.1, 1.4.11)
  const luminance = (hex: string): number => ((lab(rgb(hex), false)[0]! + 16) / 116) ** 3,
    panels = inThemes("panel-solid");
  for (const colours of [...bodies, inThemes("fence")])
    colours.forEach((c, theme) => {
      const [low, high] = [luminance(c), luminance(panels[theme]!)].sort((a, b) => a - b) as [number, number];
      assert.ok((high + 0.05) / (low + 0.05) >= 3, `${c} on ${panels[theme]}`);
    });
  for (const k of [0, 1]) assert.ok(apart(rgb(good![k]!), rgb(bad![k]!), true) > 30, `${good![k]} ${bad![k]}`);
});

test("scales of depths grow darker evenly", () => {
  for (const [scale, most] of [
    [DEEP, 0.1],
    [VIRIDIS, 0.25],
  ] as const)
    for (const blind of [false, true]) {
      const colours = Array.from({ length: 33 }, (_, k) => scaleColour([...scale], k / 32)),
        steps = colours.slice(1).map((c, k) => apart(c, colours[k]!, false)),
        mean = steps.reduce((a, b) => a + b) / steps.length,
        spread = Math.sqrt(steps.reduce((s, v) => s + (v - mean) ** 2, 0) / steps.length) / mean;
      for (let k = 1; k < colours.length; k++) assert.ok(lab(colours[k]!, blind)[0]! < lab(colours[k - 1]!, blind)[0]!);
      assert.ok(spread < most, `${spread}`);
    }
});

test("sizes follow large windows only", () => {
  assert.deepEqual(
    [
      [390, 844],
      [1440, 900],
      [1920, 1080],
      [2560, 1440],
      [3840, 2160],
      [3840, 1080],
    ].map(([w, h]) => zoomOf(w!, h!)),
    [1, 1, 1, 1.35, 2, 1],
  );
});

const corner = (k: number, r = 10): [number, number] => [r * Math.cos(k), r * Math.sin(k)],
  fence = (name: string, corners = [0, 2, 4].map((k) => corner(k)), keep = "inside"): FenceInfo => ({
    name,
    keep,
    corners,
  });

test("a fence that a server would refuse has its reason", () => {
  const bow: [number, number][] = [
    [0, 0],
    [10, 10],
    [10, 0],
    [0, 10],
  ];
  assert.deepEqual(crossingSides(bow), [1, 3]);
  assert.equal(crossingSides([bow[0]!, bow[2]!, bow[1]!, bow[3]!]), null);
  assert.match(
    fenceProblem([fence("a", bow)]),
    /fence 'a' crosses itself: the sides that begin at corners 1 and 3 cross/,
  );
  assert.match(fenceProblem([fence("a", bow.slice(2))]), /fewer than 3 corners/);
  assert.match(fenceProblem([fence("a"), fence("a")]), /two fences are named 'a'/);
  assert.match(fenceProblem([fence("å".repeat(16))]), /too long: use at most 31 bytes/);
  assert.match(fenceProblem([fence(" ")]), /no name/);
  assert.equal(fenceProblem([fence("a"), fence("b")]), "");
  const large = fence(
    "c",
    Array.from({ length: 49 }, (_, k) => corner((2 * Math.PI * k) / 49)),
  );
  assert.equal(fenceProblem([large]), "");
  assert.match(changeProblem([fence("a"), large]), /'c' has 49 corners: a running server accepts at most 48/);
});

test("changes of fences lead from one set to another, and stay when the server's fences change", () => {
  const [a, b, c] = [fence("a"), fence("b"), fence("c")],
    draft = [structuredClone(a), { ...b, keep: "outside" }, fence("d")],
    changes = fenceChanges([a, b, c], draft);
  assert.deepEqual(
    changes.map((f) => [f.name, f.keep, f.corners.length]),
    [
      ["c", "inside", 0],
      ["b", "outside", 3],
      ["d", "inside", 3],
    ],
  );
  assert.deepEqual(withChanges([a, b, c], changes), draft);
  assert.deepEqual(fenceChanges(draft, structuredClone(draft)), []);
  const later = withChanges([fence("a", undefined, "outside"), b, fence("e")], changes); // another operator's
  assert.deepEqual(
    later.map((f) => [f.name, f.keep]),
    [
      ["a", "outside"],
      ["b", "outside"],
      ["e", "inside"],
      ["d", "inside"],
    ],
  );
  assert.equal(later[3], draft[2], "the fence that is being drawn");
});

test("an aircraft is drawn with its wing across and its nose ahead", () => {
  const model: ModelInfo = {
    name: "uav",
    type: "aircraft",
    title: "",
    source: "",
    validated: "",
    shape: { kind: "box", size: [1.7, 2.9, 0.3] },
    appearance: "",
    draw_parts: true,
    mass: null,
    thrusters: [],
    fins: [],
    tanks: [],
    transducer: null,
  };
  for (const coarse of [false, true]) {
    const low = [Infinity, Infinity, Infinity],
      high = [-Infinity, -Infinity, -Infinity];
    for (const part of hullGeometry(model, coarse)) {
      part.computeBoundingBox();
      const { min, max } = part.boundingBox!;
      [min.x, min.y, min.z].forEach((v, k) => (low[k] = Math.min(low[k]!, v)));
      [max.x, max.y, max.z].forEach((v, k) => (high[k] = Math.max(high[k]!, v)));
    }
    const span = high[0]! - low[0]!,
      length = high[2]! - low[2]!;
    assert.ok(Math.abs(span - 2.9) < 0.01, `span ${span}`);
    assert.ok(length > 1.2 && length < 1.9 && low[2]! < -0.6, `length ${length}`);
  }
});
