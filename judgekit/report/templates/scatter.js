// The claim as a picture: score against answer quality, a circle for all answers that share a place.

const PLOT = { left: 62, right: 284, top: 36, bottom: 196, width: 300, height: 246, radius: 11 };

/** An element of SVG; a text child is text, whatever is in it. */
function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children.flat(3));
  return made;
}

const rough = (value) => String(Math.round(value * 100) / 100);
const answers = (count) => `${count.toLocaleString("en")} ${count === 1 ? "answer" : "answers"}`;

/** One labeling's plot. */
function plot(l) {
  const { ends, places } = placesOf(index, state, l), name = index.labelings[l].name;
  const at = { x: (value) => PLOT.left + ((value - ends[0][0]) / (ends[0][1] - ends[0][0])) * (PLOT.right - PLOT.left),
    y: (value) => PLOT.bottom - ((value - ends[1][0]) / (ends[1][1] - ends[1][0])) * (PLOT.bottom - PLOT.top) };
  const most = Math.max(1, ...[...places.values()].map((place) => place.points.length));
  const ticks = (which) => [ends[which][0], (ends[which][0] + ends[which][1]) / 2, ends[which][1]];
  const axes = [
    ticks(0).map((value) => [drawing("line", { class: "grid", x1: at.x(value), x2: at.x(value), y1: PLOT.top, y2: PLOT.bottom }),
      drawing("text", { class: "tick middle", x: at.x(value), y: PLOT.bottom + 26 }, rough(value))]),
    ticks(1).map((value) => [drawing("line", { class: "grid", x1: PLOT.left, x2: PLOT.right, y1: at.y(value), y2: at.y(value) }),
      drawing("text", { class: "tick end", x: PLOT.left - 15, y: at.y(value) + 4 }, rough(value))]),
    drawing("text", { class: "quiet middle", x: (PLOT.left + PLOT.right) / 2, y: PLOT.bottom + 44 }, index.measure),
    drawing("text", { class: "strong", x: PLOT.left, y: 14 }, name.length > 30 ? `${name.slice(0, 29)}…` : name, drawing("title", {}, name))];
  const marks = [...places].sort(([, a], [, b]) => a.x - b.x || a.y - b.y).map(([key, { x, y, points }]) => {
    const ids = new Set(points.map(([query]) => query));
    const said = `${name}: ${index.measure} ${short(x)}, ${index.metric} ${short(y)}: ${answers(points.length)} to ${ids.size.toLocaleString("en")} ${ids.size === 1 ? "query" : "queries"}`;
    const mark = drawing("g", { class: "mark place", role: "button", tabindex: "-1", "aria-label": said, "aria-pressed": state.at === key, "data-at": key },
      drawing("circle", { class: `s${l % 8} point`, cx: at.x(x), cy: at.y(y), r: Math.max(2.5, PLOT.radius * Math.sqrt(points.length / most)) }));
    mark.onclick = () => go(ids.size === 1 ? { query: index.queries[points[0][0]].id, doc: "", by: "" } : { at: state.at === key ? "" : key, query: "", doc: "", by: "" });
    mark.onfocus = mark.onpointerenter = () => point(mark);
    mark.onblur = mark.onpointerleave = () => point(null);
    return mark;
  });
  const upright = drawing("text", { class: "quiet middle", transform: `rotate(-90 10 ${(PLOT.top + PLOT.bottom) / 2})`, x: 10, y: (PLOT.top + PLOT.bottom) / 2 }, index.metric);
  return drawing("svg", { class: "figure plot", role: "group", "aria-label": `${name}: ${index.measure} against ${index.metric}`, viewBox: `0 0 ${PLOT.width} ${PLOT.height}` }, axes, upright, marks);
}

/** Draw the plots of the chosen labelings; a mark that had the focus keeps it. */
function plots() {
  if (!index.scored) return;
  const held = document.activeElement?.closest?.("#plots .mark")?.getAttribute("data-at");
  $("view").value = state.view;
  $("plots").replaceChildren(...chosen(index.labelings.map((one) => one.name), state.labeling).map(plot));
  const marks = [...$("plots").querySelectorAll(".mark")];
  const first = marks.find((mark) => mark.getAttribute("data-at") === (held || state.at)) || marks[0];
  first?.setAttribute("tabindex", "0");
  if (held && first) first.focus({ preventScroll: true });
}

/** Arrow keys go from circle to circle, Enter and the space bar do what a click does. */
function overPlots(event) {
  const marks = [...$("plots").querySelectorAll(".mark")], place = marks.indexOf(event.target.closest(".mark"));
  if (place < 0) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); marks[place].dispatchEvent(new MouseEvent("click")); return; }
  if (event.key === "Escape") point(null);
  const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: marks.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = marks[Math.min(Math.max(to, 0), marks.length - 1)];
  for (const mark of marks) mark.setAttribute("tabindex", mark === next ? "0" : "-1");
  next.focus();
}
