// Formulas of charts, and computations on series.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chartsToCsv } from "../src/chart_csv";
import type { ChartField } from "../src/chart_fields";
import { fieldName, fieldReference, findField, splitName } from "../src/field_names";
import { evaluate, fieldsOf, FormulaError, parseFormula, reach } from "../src/formula";
import { derivative, integral, movingMean, resample, statistics, unwrap, wrap } from "../src/series_math";
import { parseUnit, unitText } from "../src/unit_algebra";

const TIME = [0, 1, 2, 3];
const FIELDS: Record<string, [number[], string]> = {
  north: [[3, 6, 9, 12], "m"],
  east: [[4, 8, 12, 16], "m"],
  heading: [[0, 90, 180, 270], "°"],
  speed: [[1, 2, 3, 4], "m/s"],
  "auv-2.depth": [[1, 1, 1, 1], "m"],
  share: [[0, 0.5, 1, 1], ""],
};

function result(text: string): [number[], string] {
  const { value, unit } = evaluate(parseFormula(text), TIME, (name) => {
    const [v, u] = FIELDS[name]!;
    return { value: v, unit: parseUnit(u) };
  });
  const list = Array.isArray(value) ? value : [value];
  return [list.map((v) => +v.toPrecision(9)), unitText(unit)];
}

test("a formula is computed as written, with its unit", () => {
  for (const [text, value, unit] of [
    ["sqrt(north^2 + east^2)", [5, 10, 15, 20], "m"],
    ["hypot(north, east)", [5, 10, 15, 20], "m"],
    ["-north + 2 * east - 1", [4, 9, 14, 19], "m"],
    ["-2^2", [-4], ""],
    ["2^3^2", [512], ""],
    ["2^-1", [0.5], ""],
    ["8 / 4 / 2", [1], ""],
    ["10 - 4 - 3", [3], ""],
    ["(1 + 2) * 3", [9], ""],
    ["1.5e2 + .5", [150.5], ""],
    ["sin(heading)", [0, 1, +Math.sin(Math.PI).toPrecision(9), -1], ""],
    ["cos(pi)", [-1], ""],
    ["deg(atan2(east, north)) - heading * 0", Array(4).fill(+((Math.atan2(4, 3) * 180) / Math.PI).toPrecision(9)), "°"],
    ["rad(heading) * 0", [0, 0, 0, 0], "rad"],
    ["derivative(north)", [3, 3, 3, 3], "m/s"],
    ["derivative(derivative(north))", [0, 0, 0, 0], "m/s²"],
    ["derivative(heading)", [90, 90, 90, 90], "°/s"],
    ["integral(speed)", [0, 1.5, 4, 7.5], "m"],
    ["mean(north, 2)", [4.5, 6, 9, 10.5], "m"],
    ["shift(north, 1)", [NaN, 3, 6, 9], "m"],
    ["north / t", [Infinity, 6, 4.5, 4], "m/s"],
    ["speed ^ 2 / north", [1 / 3, 4 / 6, 1, 16 / 12].map((v) => +v.toPrecision(9)), "m/s²"],
    ["[auv-2.depth] - north", [-2, -5, -8, -11], "m"],
    ["abs(wrap(heading))", [0, 90, 180, 90], "°"],
    ["100 * share", [0, 50, 100, 100], ""],
    ["max(north, east)", [4, 8, 12, 16], "m"],
  ] as [string, number[], string][])
    assert.deepEqual(result(text), [value, unit], text);
});

test("a mistake gives one message that says what is wrong", () => {
  const deep = "(".repeat(60) + "1" + ")".repeat(60);
  for (const [text, message] of [
    ["", "the formula is empty"],
    ["north +", "a value is missing at the end"],
    ["(north", "')' is missing"],
    ["north)", "unexpected ')'"],
    ["north east", "unexpected 'east'"],
    ["north # 2", "unexpected '#'"],
    ["[north", "']' is missing after '['"],
    ["* 2", "a value is missing before '*'"],
    ["sqrt(1, 2)", "'sqrt' takes one value, not 2"],
    ["mean(north)", "'mean' takes 2 values, not 1"],
    ["mean(north, east)", "the second value of 'mean' must be a number of seconds"],
    ["north + speed", "cannot add m and m/s"],
    ["north - heading", "cannot subtract m and °"],
    ["sin(north)", "'sin' needs an angle, not m"],
    ["exp(north)", "'exp' needs a plain number, not m"],
    ["2 ^ north", "'^' needs a plain number, not m"],
    ["deg(heading)", "'deg' converts rad, not °"],
    [deep, "more than 40 nested parentheses"],
    ["1".repeat(401), "the formula is longer than 400 characters"],
  ])
    assert.throws(
      () => result(text!),
      (e) => e instanceof FormulaError && e.message === message,
      text,
    );
  assert.throws(() => parseFormula("alert(1)"), /there is no function 'alert'; available: abs, acos,/);
  assert.throws(() => parseFormula("constructor(1)"), /there is no function 'constructor'/);
});

test("fields of a formula, and the time around a value that it needs", () => {
  const f = parseFormula("mean(shift(lead.depth, -5), 10) + [auv-2.depth] + lead.depth");
  assert.deepEqual(fieldsOf(f), ["lead.depth", "auv-2.depth"]);
  assert.equal(reach(f), 15);
});

test("units", () => {
  for (const text of ["m/s²", "°/s", "kg/(m s)", "1/s", "N m", "rev/min", ""])
    assert.equal(unitText(parseUnit(text)), text);
});

test("series: interpolation, the shorter way round, gaps", () => {
  assert.deepEqual(resample({ time: [0, 2, 4], value: [0, 4, NaN] }, [-1, 0, 1, 2, 3, 4, 5]), [
    NaN,
    0,
    2,
    4,
    NaN,
    NaN,
    NaN,
  ]);
  assert.deepEqual(resample({ time: [0, 1], value: [350, 10] }, [0.5], true), [360]);
  assert.deepEqual(derivative([0, 1, 2, 3], [1, NaN, 3, 5]), [NaN, NaN, 2, 2]);
  assert.deepEqual(derivative([0, 1], [359, 1], true), [2, 2]);
  assert.deepEqual(unwrap([350, 10, NaN, 30, 350]), [350, 370, NaN, 390, 350]);
  assert.deepEqual([wrap(190), wrap(-190)], [-170, 170]);
  assert.deepEqual(integral([0, 1, 2, 3], [1, NaN, 1, 1]), [0, NaN, 0, 1]);
  assert.deepEqual(movingMean([0, 1, 2, 3, 4], [0, 10, NaN, 20, 30], 2), [5, 5, NaN, 25, 25]);
});

test("statistics of a stretch", () => {
  const found = statistics({ time: [0, 1, 2, 3, 4], value: [100, 1, NaN, 3, 100] }, 0.5, 3.5)!;
  assert.deepEqual(found, { n: 2, min: 1, max: 3, mean: 2, std: 1, rms: Math.sqrt(5) });
  assert.equal(statistics({ time: [0], value: [NaN] }), null);
});

test("names of fields", () => {
  const field = (key: string): ChartField => ({ group: "", title: key, key, unit: "m", factor: 1, down: false });
  const fields = ["motion.depth", "sensor.ctd.temperature.0", "sensor.dvl.velocity.0", "sensor.dvl.velocity.1"].map(
    field,
  );
  assert.deepEqual(
    fields.map((f) => fieldName(f.key, fields)),
    ["depth", "ctd.temperature", "dvl.velocity.0", "dvl.velocity.1"],
  );
  assert.equal(fieldReference("lead", "motion.depth", fields, false), "lead.depth");
  assert.equal(fieldReference("auv-2", "motion.depth", fields, true), "[other:auv-2.depth]");
  assert.deepEqual(splitName("other:a.b.depth", ["a", "a.b"], "a"), { body: "a.b", field: "depth", other: true });
  assert.deepEqual(splitName("ctd.temperature", ["a"], "a"), { body: "a", field: "ctd.temperature", other: false });
  assert.equal(findField("a", "sensor.ctd.temperature.0", fields).key, "sensor.ctd.temperature.0");
  assert.throws(() => findField("a", "depht", fields), /'a' has no field 'depht'; did you mean 'depth'\?/);
  assert.throws(() => findField("a", "salinity_of_the_sea", fields), /'a' has no field 'salinity_of_the_sea'$/);
});

test("a table for each chart, with gaps", () => {
  const csv = chartsToCsv([
    {
      titles: ["time s", 'a "b" m'],
      columns: [
        [0, 1234.56789],
        [null, 1 / 3],
      ],
    },
    { titles: ["time s"], columns: [[2]] },
  ]);
  assert.equal(csv, '"time s","a \'b\' m"\n0,\n1234.56789,0.3333333\n\n"time s"\n2\n');
});
