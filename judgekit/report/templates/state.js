// What is looked at: a fragment such as #show=wrong&run=bm25&query=q17 says all of it, so that it can be shared.

/** @typedef {{find: string, show: string, labeling: string, run: string, kind: string, view: string, at: string, sort: string, query: string, doc: string, by: string}} State */

/** @type {State} */
const START = { find: "", show: "", labeling: "", run: "", kind: "", view: "", at: "", sort: "-disagreement", query: "", doc: "", by: "" };

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
  if (state.kind && query.kind !== state.kind) return false;
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
  const placed = inPlace(index, state);
  const rows = index.queries.map((_, at) => at).filter((at) => wanted(index, state, at) && (!placed || placed.has(at)));
  const values = new Map(rows.map((at) => [at, value(at)]));
  return rows.sort((a, b) => down * (values.get(a) - values.get(b)) || a - b);
}

const PLACES = 20;

/** Score and quality of a query by run, null where one is unknown; for the view "within" less their means over the runs. */
function pairsOf(index, state, l, at) {
  const { scores, quality } = index.queries[at];
  const pairs = index.runs.map((_, r) => (scores[l][r] === null || quality[r] === null ? null : [scores[l][r], quality[r]]));
  if (state.view !== "within") return pairs;
  const known = pairs.filter((pair) => pair);
  if (known.length < 2) return pairs.map(() => null);
  const mean = [0, 1].map((which) => known.reduce((sum, pair) => sum + pair[which], 0) / known.length);
  return pairs.map((pair) => pair && [pair[0] - mean[0], pair[1] - mean[1]]);
}

/**
 * Where the answers of a labeling stand that are asked for: the ends of both axes, and by place its middle and its points, query and run each.
 * @returns {{ends: number[][], places: Map<string, {x: number, y: number, points: number[][]}>}}
 */
function placesOf(index, state, l) {
  const all = index.queries.map((_, at) => pairsOf(index, state, l, at));
  const ends = [0, 1].map((which) => {
    const values = all.flat().filter((pair) => pair).map((pair) => pair[which]);
    const low = values.reduce((a, b) => Math.min(a, b), 0), high = values.reduce((a, b) => Math.max(a, b), 0);
    if (state.view !== "within") return [low, Math.max(high, 1)];
    const far = Math.max(-low, high, 0.5);
    return [-far, far];
  });
  const places = new Map(), runs = chosen(index.runs, state.run);
  for (let at = 0; at < all.length; at++) {
    if (!wanted(index, state, at)) continue;
    for (const r of runs) {
      const pair = all[at][r];
      if (!pair) continue;
      const steps = pair.map((value, which) => Math.round(((value - ends[which][0]) / (ends[which][1] - ends[which][0])) * PLACES));
      const key = [l, ...steps].join("."), middle = steps.map((step, which) => ends[which][0] + (step / PLACES) * (ends[which][1] - ends[which][0]));
      if (!places.has(key)) places.set(key, { x: middle[0], y: middle[1], points: [] });
      places.get(key).points.push([at, r]);
    }
  }
  return { ends, places };
}

/** The queries of the place that is looked at; null where none is. */
function inPlace(index, state) {
  const l = parseInt(state.at, 10);
  if (!state.at || !index.scored || !index.labelings[l]) return null;
  return new Set((placesOf(index, state, l).places.get(state.at)?.points ?? []).map(([at]) => at));
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
