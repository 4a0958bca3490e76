// The page: it takes files, has them judged, and shows what was found. Text of a bundle is only ever set as text.
"use strict";

const MOST_ROWS = 1000; // shown of one bundle

const byId = (id) => document.getElementById(id);

// element returns a new element with a class, and children that are elements or texts.
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null));
  return made;
}

// quote marks text of the bundle.
function quote(text, name = "span") {
  const made = element(name, "q", visible(text));
  made.dir = "auto";
  return made;
}

// quoteName marks a name of the bundle, which a narrow page may break behind its punctuation.
function quoteName(name) {
  const made = quote("");
  visible(name).split(/(?<=[^:./_@#-]{2}[:./_@#-])(?=.{3})/).forEach((part, i) => made.append(...(i ? [element("wbr")] : []), part));
  return made;
}

// The theme that was chosen in the console, where this page is one of its own.
try {
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* a file may have no storage */ }

const judged = new Map(); // SHA-256 of a file -> {name, bytes, v}; one that cannot be read has an unread error in place of bytes

async function take(fileList) {
  for (const file of fileList) {
    byId("status").textContent = `Checking ${file.name} …`;
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      judged.set(await sha256Hex(bytes), { name: file.name, bytes });
    } catch { // a folder, or a file that is gone
      judged.set("unread " + file.name, { name: file.name, unread: new Error("It cannot be read as a file.") });
    }
  }
  await judgeAll();
}

// judgeAll judges every bundle under the key that is given now, and shows them, the newest first.
async function judgeAll() {
  const text = stripped(byId("key").value, " \t\r\n"), key = text === "" ? null : hexBytes(text, 32);
  const unusable = text !== "" && (key === null || smallOrder(key));
  byId("key-fault").textContent = unusable ? "This is not the 64 hexadecimal digits of an Ed25519 public key, so no bundle is judged." : "";
  byId("results").replaceChildren();
  if (unusable || judged.size === 0) {
    byId("status").textContent = unusable ? "Not judged." : "No bundle yet.";
    return;
  }
  const shownBundles = [];
  for (const [sha256OfFile, bundle] of judged) {
    try {
      if (bundle.unread) throw bundle.unread;
      bundle.v = await verifyBundle(bundle.bytes, key);
      shownBundles.push(bundleSection(bundle, sha256OfFile));
    } catch (e) {
      bundle.v = null;
      shownBundles.push(element("section", "", element("h2", "", visible(bundle.name)),
        element("div", "banner bad", element("p", "", "The file"), element("p", "", "NOT JUDGED: nothing is known about this bundle. " + e.message))));
    }
  }
  byId("results").replaceChildren(...shownBundles.reverse());
  byId("status").textContent = summaryOf([...judged.values()]);
}

// summaryOf counts the bundles by what was found of them.
function summaryOf(bundles) {
  const count = (what, is) => [bundles.filter(is).length, what];
  const found = [count("intact", ({ v }) => v?.faults.length === 0), count("not intact", ({ v }) => v?.faults.length > 0), count("not judged", ({ v }) => v === null)];
  if (bundles.length === 1) return `1 bundle, ${found.find(([n]) => n === 1)[1]}.`;
  return `${bundles.length} bundles: ${found.filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`).join(", ")}.`;
}

// onPage returns a sentence about the flag --key of the other verifiers in words for the field of the page, which has one key.
const onPage = (text) => text.replace("run again with --key.", "give it above.").replace("one that was given with --key, or that it leads to", "the one that was given above")
  .replace("not a key given with --key", "not the key given above");

function bundleSection({ name, v }, sha256OfFile) {
  const intact = v.faults.length === 0, tone = !intact ? "bad" : v.pinned && v.whole ? "good" : "caution";
  const section = element("section", "", element("h2", "", visible(name)));
  section.append(element("div", "banner " + tone, element("p", "", "The file"), element("p", "", v.conclusion),
    intact && v.key && !v.pinned ? element("p", "", "Who signed is not known: give the operator's key above.") : null));
  const recorded = /: DENY/.test(v.verdict) ? "bad" : /: REVIEW/.test(v.verdict) ? "caution" : "";
  section.append(element("div", "banner " + recorded, element("p", "", "The agent"), element("p", "", v.verdict)));
  const checks = element("ul", "checks");
  for (const fault of v.faults) checks.append(element("li", "bad", "FAIL  " + onPage(visible(printable(fault)))));
  for (const passed of intact ? v.passed : []) checks.append(element("li", "good", "PASS  " + onPage(passed)));
  for (const skipped of intact ? v.skipped : []) checks.append(element("li", "caution", "NOT CHECKED  " + onPage(skipped)));
  const entries = entriesOf(v), bad = rowsAtFault(v.faults);
  section.append(element("h3", "", "What was checked"), checks);
  if (!intact && (entries.length || v.manifest)) section.append(element("p", "banner bad", "Nothing that the file says below is proven. It is shown so that you can see where the file is wrong."));
  section.append(factsTable(v, sha256OfFile, entries));
  if (entries.length) section.append(chainTable(entries, bad, intact), decisions(entries, bad));
  return section;
}

function factsTable(v, sha256OfFile, entries) {
  const o = v.log.opening, table = element("table", "facts"), previous = o?.get("previous_bundle_hash") ?? "";
  const fact = (name, value) => {
    if (value) table.append(element("tr", "", element("th", "", name), element("td", "", value)));
  };
  const manifestText = (name) => textOf(memberOf(v.manifest, name));
  const session = sessionOf(v);
  if (session) fact("Session", quoteName(session));
  if (o?.get("agent_id")) fact("Agent", quoteName(o.get("agent_id")));
  if (o) fact("Part", `${o.get("part")}${o.get("last_part") ? ", the last one" : ", more may follow"}`);
  if (manifestText("exported_at")) fact("Sealed", quote(manifestText("exported_at")));
  if (v.faults.length === 0) fact("Rows", String(v.log.rows));
  else if (entries.length) fact("Rows", `${entries.length}; a fault was found after ${v.log.rows} of them`);
  if (v.chain) fact("Chain", element("code", "", v.chain));
  if (v.key) fact("Signed by", element("code", "", hexOf(v.key)));
  fact("SHA-256 of the file", element("code", "", sha256OfFile));
  if (previous) {
    const found = judged.get(previous);
    fact("Previous bundle", element("span", "", element("code", "", previous),
      found ? ` is ${visible(found.name)}, which you have given, too.` : " was not given. Drop it here, too, to see that nothing between the two is missing."));
  }
  return table;
}

// shownEntries returns the first rows, and those at fault.
const shownEntries = (entries, bad) => entries.filter(({ number }, i) => i < MOST_ROWS || bad.has(number)).slice(0, 2 * MOST_ROWS);

function leftOut(entries, shownRows) {
  return entries.length > shownRows.length ? element("p", "soft", `${entries.length - shownRows.length} more rows are not shown.`) : null;
}

function chainTable(entries, bad, intact) {
  const rows = shownEntries(entries, bad), body = element("tbody"), short = (value) => element("code", "", textOf(value).slice(0, 12));
  for (const { number, row, readable } of rows) {
    body.append(element("tr", bad.has(number) ? "bad" : "", element("td", "", String(number)),
      element("td", "", readable ? quote(textOf(row.get("action_type"))) : "cannot be read"), element("td", "", readable ? quoteName(textOf(row.get("tool_name"))) : ""),
      element("td", "before", short(row.get("prev_hash"))), element("td", "hash", short(row.get("row_hash")))));
  }
  const head = element("thead", "", element("tr", "", ...["Row", "Type", "Tool", "Hash of the row before", "Hash"].map((name) => element("th", "", name))));
  const details = element("details", "", element("summary", "", `The chain, row by row (${entries.length})`),
    element("div", "scroll", element("table", "chain", head, body)), leftOut(entries, rows));
  details.open = !intact;
  return details;
}

function decisions(entries, bad) {
  const actions = actionsOf(entries), rows = shownEntries(actions, bad);
  const section = element("div", "", element("h3", "", "What was decided, and why"),
    element("p", "soft", "Each entry is what the agent's own record says. A grey box marks text that is quoted from the file. The file does not prove that it happened like this."));
  for (const entry of rows) section.append(decisionArticle(entry, bad.has(entry.number)));
  section.append(leftOut(actions, rows) ?? "");
  return section;
}

function decisionArticle(entry, atFault) {
  const d = decisionOf(entry), article = element("article", atFault ? "bad" : "");
  if (!entry.readable) {
    article.append(element("h3", "", `Row ${entry.number} cannot be read.`));
    return article;
  }
  article.append(element("h3", "", `Row ${entry.number}. `, quoteName(d.does), " ", quoteName(d.name)),
    element("p", "soft", quote(d.time), d.category ? " · " : null, d.category ? quote(d.category) : null));
  if (d.alternatives.length) {
    const body = element("tbody");
    for (const a of d.alternatives) {
      body.append(element("tr", a.chosen ? "chosen" : "", element("td", "", quote(a.id)), element("td", "", quote(a.description)), element("td", "", a.score),
        element("td", "", a.chosen ? "chosen" : "")));
    }
    article.append(element("table", "options", element("thead", "", element("tr", "", ...["Option", "Description", "Score", ""].map((name) => element("th", "", name)))), body));
  }
  if (d.reasoning) article.append(element("p", "", "Why, in the agent's words:"), quote(d.reasoning, "div"));
  if (d.values.length) article.append(element("p", "", "By the values: ", ...d.values.flatMap((value, i) => (i ? [", ", quote(value)] : [quote(value)])), d.confidence ? ` · confidence ${d.confidence}` : null));
  if (d.escalation) article.append(element("p", "", "The agent asked its principal: ", ...d.escalation.flatMap((text, i) => (i ? [" · ", quote(text)] : [quote(text)]))));
  if (d.error) article.append(element("p", "", "Error: ", quote(d.error)));
  for (const p of d.problems) {
    article.append(element("div", "remark " + p.kind, element("p", "", quote(p.type), ` (${[p.severity, p.kind].filter(Boolean).map(visible).join(" ")})`),
      p.description ? quote(p.description, "div") : null));
  }
  if (d.judged && d.problems.length === 0) article.append(element("p", "soft", d.judged === "judged" ? "The verdict recorded in the file names no problem." : "The verdict recorded in the file: not judged."));
  return article;
}

for (const sentence of [Says.NOT_TRUTH, Says.NOT_TIME, Says.NOT_OWNER, ...LIMITATIONS]) byId("limits").append(element("li", "", sentence));
byId("files").addEventListener("change", (event) => take(event.target.files));
byId("key").addEventListener("change", judgeAll);
const drop = byId("drop");
for (const kind of ["dragover", "dragenter"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, () => drop.classList.remove("over"));
document.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files); });
