// What the browser's Python has to load, as one archive of byte code: node byte_code.mjs PYODIDE STAGED OUT
// STAGED has the modules beside the standard library and texts; whatever their diagnosis loads is packed.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

process.on("uncaughtException", (error) => {
  console.error(error.message ?? error); // Node would print the line, which in Pyodide is a megabyte
  process.exit(1);
});
const [pyodide, staged, out] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide });
python.FS.mkdirTree("/staged");
python.FS.mount(python.FS.filesystems.NODEFS, { root: staged }, "/staged");
python.runPython(fs.readFileSync(`${staged}/packing.py`, "utf8"));
fs.writeFileSync(out, python.FS.readFile("/tmp/packed.zip"));
