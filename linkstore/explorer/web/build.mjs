// Builds the script and the styles that the page, the file and the widget share.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const out = process.argv[2] ?? "../static";
await build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  outfile: `${out}/explorer.js`,
});
// A script in a page ends at its end tag, wherever that stands.
const script = await readFile(`${out}/explorer.js`, "utf8");
const licences = await readFile("LICENCES.txt", "utf8");
await writeFile(`${out}/explorer.js`, `/*!\n${licences}*/\n${script.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3c!--")}`);
await build({ entryPoints: ["src/style.css"], minify: true, outfile: `${out}/explorer.css` });
