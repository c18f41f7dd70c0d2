// Bundles the page and what it needs of others into wavesim_viz/static, with their licences.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const out = "../wavesim_viz/static";
mkdirSync(out, { recursive: true });
await build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outfile: `${out}/main.js`,
  legalComments: "none",
  logLevel: "warning",
});
await build({
  entryPoints: ["src/style.css"],
  bundle: true,
  minify: true,
  outfile: `${out}/style.css`,
  logLevel: "warning",
});
copyFileSync("src/index.html", `${out}/index.html`);
copyFileSync("src/icon.svg", `${out}/icon.svg`);
writeFileSync(
  `${out}/LICENCES.txt`,
  ["three", "uplot"].map((p) => `${p}\n\n${readFileSync(`node_modules/${p}/LICENSE`, "utf8")}`).join("\n\n"),
);
