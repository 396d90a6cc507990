// The queries: a list that is drawn as far as it is looked at, and a dialog for one of them.

/**
 * What queries are found by.
 * @typedef {{id: string, question: string, disagreement: number, quality: (number | null)[], scores: (number | null)[][], kind: string, unanswered: boolean[], relevant: number[][], lost: string[][]}} Entry
 * @typedef {{name: string, least: number, scale: string, asked: string, takes: string}} Labeling
 * A piece of a message is its text, or 0, 1, 2: the question, the document's title, its text.
 * @typedef {{messages: {role: string, content: (string | number)[]}[], settings: string}} Asked
 * @typedef {{queries: Entry[], labelings: Labeling[], requests: Asked[], runs: string[], measure: string, scored: boolean, metric: string, metrics: string[], k: number, depth: string, right: number,
 *   block: number}} Index
 * What is behind one query; labels by labeling and document, null where a document was not labelled.
 * @typedef {{relevance: number | null, status?: string, raw?: string, reason?: string, model?: string, asked?: number | Asked}} Label
 * What replies took, by labeling and document: requests, tokens of prompt and reply, seconds, and when the last was stored, in minutes since 1970.
 * @typedef {((number | null)[] | null)[][]} Took
 * @typedef {{run: string, depth: number, model: string, answer: string, status: string, reason: string, values: Object<string, number | null>}} Given
 * @typedef {{answers: string[], docs: string[], titles: string[], texts: string[], lists: Object<string, number[]>, labels: (Label | null)[][],
 *   given: Given[], took: Took}} Rows
 */

/** @returns {any} the element of an id */
const $ = (id) => document.getElementById(id);
const STEP = 50;

/** An element with attributes and children; texts are texts, whatever is in them. */
function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat(3).filter((child) => child !== null));
  return made;
}

const bdi = (text) => el("bdi", {}, text);
const short = (value) => (value === null || value === undefined ? "–" : String(Math.round(value * 1000) / 1000));
const percent = (value) => `${Math.round(100 * value)} %`;

/** @param {string} text base64 of deflated JSON */
async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const blocks = new Map();
/** @returns {Promise<Rows>} the rows of one query */
async function rowsOf(at) {
  const number = Math.floor(at / index.block);
  if (!blocks.has(number)) blocks.set(number, inflated($(`rows-${number}`).textContent));
  const { queries, took } = await blocks.get(number), place = at % index.block;
  return { ...queries[place], took: took.map((numbers) => numbers[place]) };
}

/** @type {Index} */
let index;
let state = { ...START }, order = /** @type {number[]} */ ([]), drawn = 0;

/** Go to a state; a reader gets back to where they were. */
function go(changes) {
  location.hash = fragment(state, changes);
}

function row(at) {
  const labels = index.labelings.map((_, l) => el("td", { class: "n wide" }, String(Math.round(10 * relevantOf(index, state, l, at)) / 10)));
  const { id, question, disagreement: share } = index.queries[at], quality = qualityOf(index, state, at);
  return el("tr", {},
    el("th", { scope: "row" }, el("a", { href: fragment(state, { query: id }) }, bdi(question || id)),
      question ? el("span", { class: "ci" }, bdi(id)) : null),
    el("td", { class: "n" }, short(quality)),
    el("td", { class: "n" }, el("meter", { value: share, max: 1, "aria-hidden": "true" }), " ", percent(share)),
    labels);
}

function more(count = STEP) {
  const next = order.slice(drawn, drawn + count);
  $("rows").append(...next.map(row));
  drawn += next.length;
  $("more").hidden = drawn >= order.length;
  $("more").textContent = `Show ${Math.min(STEP, order.length - drawn)} more of ${(order.length - drawn).toLocaleString("en")}`;
}

function list() {
  order = found(index, state);
  drawn = 0;
  $("rows").replaceChildren();
  for (const id of ["find", "show", "labeling", "run", "kind"]) if ($(id) !== document.activeElement || id !== "find") $(id).value = state[id];
  const by = state.sort.replace(/^-/, "");
  for (const head of $("found").tHead.rows[0].cells) {
    head.removeAttribute("aria-sort");
    if (head.dataset.by === by) head.setAttribute("aria-sort", state.sort.startsWith("-") ? "descending" : "ascending");
  }
  $("count").textContent = `${order.length.toLocaleString("en")} of ${index.queries.length.toLocaleString("en")} queries`;
  $("clear").hidden = !(state.find || state.show || state.labeling || state.run || state.kind || state.at);
  plots();
  more();
}

function heads() {
  const titles = [["order", "Query", ""], ["quality", `${index.metric}, ${index.depth}`, "n"], ["disagreement", "Labelings disagree", "n"],
    ...index.labelings.map((one) => [`relevant:${one.name}`, one.name, "n wide"])];
  $("found").tHead.rows[0].replaceChildren(...titles.map(([by, title, cls]) => {
    const button = el("button", { type: "button" }, bdi(title));
    button.onclick = () => go({ sort: state.sort === `-${by}` ? by : `-${by}`, query: "", doc: "", by: "" });
    return el("th", { scope: "col", class: cls, "data-by": by }, button);
  }));
}

/** What a label says: its kind, its number, and in words whether it counts as relevant. */
function label(l, labels, d) {
  if (!labels[d]) return ["none", "–", "not labelled"];
  const { status = "ok", relevance: value } = labels[d];
  if (value === null) return ["lost", "–", status.replaceAll("_", " ")];
  return value >= index.labelings[l].least ? ["yes", short(value), "relevant"] : ["no", short(value), "not relevant"];
}

const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
/** A minute since 1970 as a date and a time. */
const minute = (number) => `${new Date(60000 * number).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** What the replies behind a label took, as far as it is known. @param {(number | null)[]} took */
function taken([requests, prompt, completion, seconds]) {
  return requests === null ? "" : [counted(requests, "request"), prompt === null ? "" : `${counted(prompt, "token")} of prompt`, completion === null ? "" : `${counted(completion, "token")} of reply`,
    seconds === null ? "" : `${seconds} s`].filter((part) => part).join(", ");
}

function reply(one, l, d) {
  const labels = one.labels[l], own = labels[d] ?? {}, took = one.took.map((numbers) => numbers[l]?.[d] ?? null), stored = took[4], name = index.labelings[l].name;
  const said = [["Label", label(l, labels, d).slice(1).join(", ")], ["Scale", `${index.labelings[l].scale}, relevant from ${index.labelings[l].least} on`],
    ["Asked", index.labelings[l].asked], ["An average request takes", index.labelings[l].takes], ["Replied", own.model], ["This label took", taken(took)],
    ["Stored", stored === null ? "" : minute(stored)], ["Reason", own.reason]].filter(([, text]) => text);
  return el("div", { class: "reply", id: "reply", tabindex: "-1", role: "region", "aria-label": `What ${name} said` },
    el("h4", {}, bdi(name), " on ", bdi(one.docs[d])),
    el("dl", {}, said.map(([term, text]) => [el("dt", {}, term), el("dd", {}, bdi(text))])),
    el("h5", {}, "Raw reply"),
    own.raw ? el("pre", { tabindex: "0", class: "raw" }, bdi(own.raw)) : el("p", { class: "quiet" }, "There is no reply, or it is left out."),
    own.asked === undefined ? null : request(one, own.asked, d));
}

/** What was sent first: its messages, put together from what the page holds once, and the other fields of its body. */
function request(one, asked, d) {
  const { messages, settings } = typeof asked === "number" ? index.requests[asked] : asked;
  const own = [index.queries.find((entry) => entry.id === state.query).question, one.titles[d], one.texts[d]];
  const written = (content) => content.map((piece) => (typeof piece === "number" ? own[piece] : piece)).join("");
  return el("details", { class: "request" }, el("summary", {}, "Request"),
    messages.map(({ role, content }) => [el("h6", {}, role), el("pre", { tabindex: "0", class: "raw" }, bdi(written(content)))]),
    el("h6", {}, "Other fields"), el("pre", { tabindex: "0", class: "raw" }, settings));
}

function documentOf(one, d) {
  const ranks = Object.entries(one.lists).map(([run, docs]) => [run, docs.indexOf(d) + 1]).filter(([, rank]) => rank);
  const votes = one.labels.map((labels, l) => label(l, labels, d)[0]).filter((v) => v === "yes" || v === "no");
  const chips = one.labels.map((labels, l) => {
    const [kind, number, text] = label(l, labels, d), name = index.labelings[l].name;
    const open = state.doc === one.docs[d] && state.by === name;
    const chip = el("button", { type: "button", class: `label ${kind}`, "aria-expanded": String(open) }, el("span", {}, bdi(name)), el("b", {}, number), el("span", {}, text));
    chip.onclick = () => go(open ? { doc: "", by: "" } : { doc: one.docs[d], by: name });
    return el("li", {}, chip);
  });
  const text = one.texts[d] === undefined ? null : el("p", { class: "passage" }, marked(one.texts[d], one.answers).map(([piece, hit]) => (hit ? el("mark", {}, piece) : piece)));
  const by = index.labelings.findIndex((x) => x.name === state.by);
  return el("article", { class: new Set(votes).size > 1 ? "split" : "" },
    el("h3", {}, bdi(one.titles[d] || one.docs[d]), one.titles[d] ? el("span", { class: "ci" }, bdi(one.docs[d])) : null),
    el("p", { class: "ranks" }, ranks.length ? ranks.map(([run, rank]) => el("span", {}, bdi(run), ` ${rank}`)) : null,
      new Set(votes).size > 1 ? el("strong", {}, "labelings disagree") : null),
    text, el("ul", { class: "labels" }, chips), state.doc === one.docs[d] && by >= 0 ? reply(one, by, d) : null);
}

/** The answers: a row for each run and model, a column for each number of documents. */
function answersOf(one) {
  const given = one.given.filter((answer) => !state.run || answer.run === state.run || answer.depth === 0).sort((a, b) => Number(a.depth === 0) - Number(b.depth === 0));
  if (!given.length) return el("p", { class: "quiet" }, "No answer is known.");
  const depths = [...new Set(given.map((answer) => answer.depth))].filter((depth) => depth).sort((a, b) => Number(b === index.k) - Number(a === index.k) || a - b);
  const models = new Set(given.map((answer) => answer.model)).size > 1;
  const cell = (found, head) => {
    if (!found) return el("td", { class: "none" });
    const { answer, status, reason, values } = found, failed = status && status !== "ok";
    const wrong = values[index.metric] < index.right;
    return el("td", { class: failed || wrong ? "answer" : "answer fine", "data-head": head }, bdi(answer), failed ? el("strong", { class: "bad" }, ` ${status.replaceAll("_", " ")} ${reason}`) : null,
      el("span", { class: "ci" }, Object.entries(values).map(([metric, value]) => `${metric} ${short(value)}`).join(", ")));
  };
  const rows = [...new Set(given.map((answer) => JSON.stringify([answer.run, answer.model])))].map((key) => JSON.parse(key));
  const of = (run, model, depth) => given.find((answer) => answer.run === run && answer.model === model && answer.depth === depth);
  const name = (run, model, what) => el("th", { scope: "row" }, what, models ? [" ", el("span", { class: "ci" }, bdi(model))] : null);
  const heads = depths.map((depth) => `from the top ${depth}${depth === index.k ? ", as decided on" : ""}`);
  return el("div", { class: "scroll answers", role: "region", "aria-label": "Answers", tabindex: "0" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map(([run, model]) => [
      depths.some((depth) => of(run, model, depth)) ? el("tr", {}, name(run, model, bdi(run)), depths.map((depth, d) => cell(of(run, model, depth), heads[d]))) : null,
      of(run, model, 0) ? el("tr", {}, name(run, model, "no documents"), cell(of(run, model, 0), ""), depths.slice(1).map(() => cell())) : null]))));
}

/** The documents of a query: those of the chosen run in its order, else the best ranks first. */
function documents(one) {
  const rank = (d, run) => { const at = (one.lists[run] || []).indexOf(d); return at < 0 ? 1000 : at; };
  const runs = state.run && one.lists[state.run] ? [state.run] : Object.keys(one.lists);
  const best = (d) => Math.min(...runs.map((run) => rank(d, run))) + runs.filter((run) => rank(d, run) === 1000).length / 100;
  return one.docs.map((_, d) => d).sort((a, b) => best(a) - best(b) || a - b);
}

async function show() {
  const dialog = $("query"), body = $("query-body"), at = index.queries.findIndex((entry) => entry.id === state.query), place = order.indexOf(at);
  body.ariaBusy = "false";
  if (!state.query) return dialog.open && dialog.close();
  $("query-h").replaceChildren(bdi(at < 0 ? state.query : index.queries[at].question || state.query));
  const [before, after] = [order[place - 1], order[place + 1]];
  for (const [id, to] of [["before", before], ["after", after]]) {
    $(id).hidden = to === undefined || place < 0;
    if (to !== undefined) $(id).href = fragment(state, { query: index.queries[to].id, doc: "", by: "" });
  }
  if (!dialog.open) dialog.showModal();
  if (at < 0) return body.replaceChildren(el("p", {}, "This report does not hold a query of that id."));
  const asked = state.query;
  body.ariaBusy = "true";
  const one = await rowsOf(at);
  if (asked !== state.query) return;
  body.ariaBusy = "false";
  const fresh = body.dataset.query !== state.query;
  body.dataset.query = state.query;
  body.replaceChildren(
    el("div", { class: "about" }, el("p", { class: "ci" }, bdi(state.query), place < 0 ? "" : `, ${(place + 1).toLocaleString("en")} of ${order.length.toLocaleString("en")} in the list`),
      el("h3", {}, "Reference answers"), one.answers.length ? el("ul", {}, one.answers.map((text) => el("li", {}, bdi(text)))) : el("p", { class: "quiet" }, "None, or left out.")),
    el("div", { class: "given" }, el("h3", {}, "Answers"), answersOf(one)),
    el("div", { class: "docs" }, documents(one).map((d) => documentOf(one, d))));
  if (fresh) dialog.scrollTop = 0;
  const said = $("reply");
  if (said) { said.scrollIntoView({ block: "nearest" }); said.focus({ preventScroll: true }); }
}

function follow() {
  const next = stateOf(location.hash);
  if (next === null) { if ($("query").open) { state = { ...state, query: "", doc: "", by: "" }; show(); } return; }
  const same = (keys) => keys.every((key) => next[key] === state[key]);
  const listed = same(["find", "show", "labeling", "run", "kind", "view", "at", "sort"]);
  const closed = state.query && !next.query, { top, bottom } = $("explorer").getBoundingClientRect();
  state = next;
  if (!listed) list();
  const folded = unfold($("explorer"));
  if (!next.query && !closed && (folded || bottom < 100 || top > innerHeight - 100)) $("queries").scrollIntoView();
  show();
}

async function start() {
  if (!$("index")) return;
  if (!("DecompressionStream" in window)) { $("old").hidden = false; return; }
  $("queries").ariaBusy = "true";
  index = await inflated($("index").textContent);
  const option = (value, text) => el("option", { value }, text);
  $("labeling").append(...index.labelings.map((one) => option(one.name, one.name)));
  $("run").append(...index.runs.map((run) => option(run, run)));
  for (const status of new Set(index.queries.flatMap((entry) => entry.lost.flat()))) $("show").append(option(status, `a label is ${status.replaceAll("_", " ")}`));
  const kinds = [...new Set(index.queries.map((entry) => entry.kind))].filter((kind) => kind).sort();
  $("kind").append(...kinds.map((kind) => option(kind, kind)));
  $("kind").parentElement.hidden = !kinds.length;
  $("scatter").hidden = !index.scored;
  $("plots").onkeydown = overPlots;
  heads();
  $("explorer").hidden = false;
  for (const id of ["show", "labeling", "run", "kind", "view"]) $(id).onchange = () => go({ [id]: $(id).value, at: "" });
  let waiting;
  $("find").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => { state = { ...state, find: $("find").value }; history.replaceState(null, "", fragment(state)); list(); }, 120); };
  $("more").onclick = () => { const first = drawn; more(); $("rows").rows[first].querySelector("a").focus(); };
  new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && drawn < order.length) more(); }, { root: $("list") }).observe($("more"));
  $("clear").onclick = () => go({ ...START, sort: state.sort });
  $("query").onclose = () => { if (state.query) go({ query: "", doc: "", by: "" }); };
  $("close").onclick = () => $("query").close();
  $("query").onkeydown = (event) => {
    const way = { ArrowLeft: "before", ArrowRight: "after" }[event.key];
    // Where something scrolls sideways or is typed into, arrow keys are its own.
    if (!way || $(way).hidden || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, pre, .scroll")) return;
    event.preventDefault();
    $(way).click();
  };
  $("rows").onkeydown = (event) => {
    const line = event.target.closest("tr"), to = { ArrowDown: line?.nextElementSibling, ArrowUp: line?.previousElementSibling }[event.key];
    if (!to) return;
    event.preventDefault();
    to.querySelector("a").focus();
  };
  addEventListener("hashchange", follow);
  list();
  follow();
  $("queries").ariaBusy = "false";
}

start();
