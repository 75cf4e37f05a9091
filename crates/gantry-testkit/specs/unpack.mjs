// Unpacks the Kubernetes documents, which their package holds compressed, into the folder `kubernetes`.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const from = new URL("node_modules/kubernetes-client/lib/specs/", import.meta.url);
const to = new URL("kubernetes/", import.meta.url);

mkdirSync(to, { recursive: true });
for (const name of readdirSync(from).filter((name) => name.endsWith(".gz"))) {
  writeFileSync(new URL(name.slice(0, -3), to), gunzipSync(readFileSync(new URL(name, from))));
}
