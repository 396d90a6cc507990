// What is looked at: a fragment such as #show=wrong&run=bm25&query=q17 says all of it, so that it can be shared.

/** @typedef {{find: string, show: string, labeling: string, run: string, sort: string, query: string, doc: string, by: string}} State */

/** @type {State} */
const START = { find: "", show: "", labeling: "", run: "", sort: "-disagreement", query: "", doc: "", by: "" };

/** @param {string} hash @returns {State | null} null for a fragment that names a place on the page */
function stateOf(hash) {
  if (!hash.includes("=")) return null;
  const said = new URLSearchParams(hash.slice(1));
  const state = { ...START };
  for (const key of Object.keys(START)) if (said.has(key)) state[key] = said.get(key);
  return state;
}

/** @param {State} state @param {Partial<State>} [changes] @returns {string} */
function fragment(state, changes = {}) {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...state, ...changes })) if (value !== START[key]) said.set(key, value);
  return "#" + (said.toString() || "find=");
}

/** The places of a name in a list: all of them where nothing is chosen. */
const chosen = (names, name) => (name && names.includes(name) ? [names.indexOf(name)] : names.map((_, i) => i));

/** Mean answer quality of a query over the chosen runs; null where none has one. */
function qualityOf(index, state, at) {
  const values = chosen(index.runs, state.run).map((r) => index.queries[at].quality[r]).filter((v) => v !== null);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
}

/** @returns {boolean} whether a query is among those that are asked for */
function wanted(index, state, at) {
  const runs = chosen(index.runs, state.run);
  const labelings = chosen(index.labelings.map((one) => one.name), state.labeling);
  const query = index.queries[at];
  const right = (r) => query.quality[r] >= index.right;
  const answered = (r) => query.quality[r] !== null;
  if (state.find) {
    const text = (query.id + " " + query.question).toLowerCase();
    if (!state.find.toLowerCase().split(/\s+/).every((word) => text.includes(word))) return false;
  }
  switch (state.show) {
    case "": return true;
    case "disagree": return query.disagreement > 0;
    case "wrong": return runs.some((r) => answered(r) && !right(r) && labelings.some((l) => query.relevant[l][r] > 0));
    case "right": return runs.some((r) => answered(r) && right(r) && labelings.some((l) => query.relevant[l][r] === 0));
    case "missing":
      return runs.some((r) => query.unanswered[r]) || labelings.some((l) => query.lost[l].length);
    default: return labelings.some((l) => query.lost[l].includes(state.show));
  }
}

/** @returns {number[]} the queries that are asked for, in the order that is asked for */
function found(index, state) {
  const down = state.sort.startsWith("-") ? -1 : 1, by = state.sort.replace(/^-/, "");
  const label = index.labelings.findIndex((one) => "relevant:" + one.name === by);
  const value = (at) => {
    if (by === "disagreement") return index.queries[at].disagreement;
    if (by === "quality") return qualityOf(index, state, at) ?? -Infinity;
    if (label >= 0) return relevantOf(index, state, label, at);
    return at;
  };
  const rows = index.queries.map((_, at) => at).filter((at) => wanted(index, state, at));
  const values = new Map(rows.map((at) => [at, value(at)]));
  return rows.sort((a, b) => down * (values.get(a) - values.get(b)) || a - b);
}

/** Relevant documents among those that an answer was given from, the mean over the chosen runs. */
function relevantOf(index, state, label, at) {
  const runs = chosen(index.runs, state.run);
  return runs.reduce((sum, r) => sum + index.queries[at].relevant[label][r], 0) / Math.max(runs.length, 1);
}

/** @returns {[string, boolean][]} a text in pieces, and whether each is one of the answers as whole words */
function marked(text, answers) {
  const words = answers.map((a) => a.match(/[\p{L}\p{N}\p{M}]+/gu) || []).filter((w) => w.length);
  if (!words.length) return [[text, false]];
  const one = words.sort((a, b) => b.join("").length - a.join("").length).map((w) => w.join("[^\\p{L}\\p{N}\\p{M}]+"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}])(${one.join("|")})(?![\\p{L}\\p{N}\\p{M}])`, "giu");
  return text.split(pattern).map((piece, i) => /** @type {[string, boolean]} */ ([piece, i % 2 === 1])).filter(([piece]) => piece);
}
