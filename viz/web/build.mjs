// Bundles the page and what it needs of others into wavesim_viz/static, with their licences. The first view needs only
// main and the style; other parts are chunks that the page loads later. Names contain a hash of the content, so browsers
// keep the files. Each file is also written compressed.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { gzipSync } from "node:zlib";

const out = "../wavesim_viz/static";
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  entryPoints: ["src/early.ts", "src/main.ts", "src/style.css"],
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: out,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});

/** Built file of an entry point, with what it imports at once. */
function entry(source) {
  const [path, { imports }] = Object.entries(metafile.outputs).find(([, o]) => o.entryPoint === source);
  return {
    name: basename(path),
    imports: imports.filter((i) => i.kind === "import-statement").map((i) => basename(i.path)),
  };
}
const early = entry("src/early.ts"),
  main = entry("src/main.ts"),
  // the largest first: browsers request six files at a time
  size = (name) => metafile.outputs[Object.keys(metafile.outputs).find((path) => basename(path) === name)].bytes,
  later = main.imports.filter((name) => !early.imports.includes(name)).sort((a, b) => size(b) - size(a)),
  preload = (names) => names.map((name) => `<link rel="modulepreload" href="/static/${name}" />`).join("\n    ");
writeFileSync(
  `${out}/index.html`,
  readFileSync("src/index.html", "utf8")
    .replace("style.css", entry("src/style.css").name)
    .replace("early.js", early.name)
    .replace("main.js", main.name)
    .replace("<!-- early -->", preload(early.imports))
    .replace("<!-- later -->", preload(later)),
);
copyFileSync("src/icon.svg", `${out}/icon.svg`);
writeFileSync(
  `${out}/LICENCES.txt`,
  ["three", "uplot"].map((p) => `${p}\n\n${readFileSync(`node_modules/${p}/LICENSE`, "utf8")}`).join("\n\n"),
);
for (const name of readdirSync(out))
  writeFileSync(`${out}/${name}.gz`, gzipSync(readFileSync(`${out}/${name}`), { level: 9 }));
