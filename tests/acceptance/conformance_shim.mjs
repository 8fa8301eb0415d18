// For `node --import`: the conformance suite imports `globSync` from "fs", which Node.js has from version 22 on.
// Older ones get an "fs" with a stand-in: runs against a server never call it.
import fs from "node:fs";
import { register } from "node:module";

const asModule = (source) => "data:text/javascript," + encodeURIComponent(source);

if (!("globSync" in fs)) {
  const shim = asModule(`
    export * from "node:fs";
    export { default } from "node:fs";
    export const globSync = () => { throw new Error("fs.globSync needs Node.js 22"); };`);
  register(asModule(`
    export const resolve = (specifier, context, next) =>
      specifier === "fs" && context.parentURL?.includes("/@modelcontextprotocol/conformance/")
        ? { url: ${JSON.stringify(shim)}, shortCircuit: true }
        : next(specifier, context);`));
}
