// Which view belongs to the address behind '#', and the change from one to the next.

import { get } from "./api.js";
import { el, show, trouble } from "./dom.js";
import { home } from "./home.js";
import { file } from "./file.js";
import { run } from "./run.js";
import { models } from "./models.js";
import { compare, treePage } from "./trees.js";

const VIEWS = { "": home, file, run, tree: treePage, compare, models };
let leave = null;

export function address(view, ...names) {
  return `#/${[view, ...names].map(encodeURIComponent).join("/")}`;
}

async function go() {
  const place = document.getElementById("main");
  const [view = "", ...names] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  leave?.();
  leave = null;
  const fresh = el("div", {});
  show(place, fresh);
  try {
    const left = await (VIEWS[view] ?? home)(fresh, ...names);
    if (fresh.isConnected) leave = typeof left === "function" ? left : null;
    else if (typeof left === "function") left();
  } catch (error) {
    show(fresh, trouble(error));
  }
}

// The token has done its work when the page is here: it shall not stay in the address or the history.
if (location.search) history.replaceState(null, "", `/${location.hash}`);
addEventListener("hashchange", () => {
  go();
  document.getElementById("main").focus({ preventScroll: true }); // at once: later it would take the keys from a field
  scrollTo(0, 0);
});
go();
get("folder").then((found) => {
  document.getElementById("place").textContent = `Folder ${found.folder} · phloem ${found.version}`;
}).catch(() => {});
