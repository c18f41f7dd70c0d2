// The formatter breaks code at 120 characters, but not strings and comments: this is their limit.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const LONGEST = 140;

test(`no line of the sources is longer than ${LONGEST} characters`, () => {
  const files = ["src", "test"]
      .flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`))
      .filter((name) => !name.endsWith(".svg")),
    long = files.flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line, k) => (line.length > LONGEST ? [`${file}:${k + 1} has ${line.length} characters`] : [])),
    );
  assert.ok(files.length > 50);
  assert.deepEqual(long, []);
});
