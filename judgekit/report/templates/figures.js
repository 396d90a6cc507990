// Sections that unfold where a link leads, a navigation that says where one is, and figures that answer to the pointer
// and the keyboard: the numbers of a mark stand beside it.

/** Open whatever an element is folded away in. @returns {boolean} whether anything was closed */
function unfold(element) {
  let closed = false;
  for (let at = element; at; at = at.parentElement?.closest("details")) {
    if (at.tagName === "DETAILS" && !at.open) closed = at.open = true;
  }
  return closed;
}

function arrive() {
  const place = location.hash.includes("=") ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place && unfold(place.matches("section") ? place.querySelector("details") ?? place : place)) place.scrollIntoView();
}

addEventListener("hashchange", arrive);
arrive();

const watching = new IntersectionObserver((seen) => {
  for (const one of seen) $("contents").querySelector(`[href="#${one.target.id}"]`).ariaCurrent = one.isIntersecting ? "true" : null;
}, { rootMargin: "-20% 0px -79% 0px" });
for (const link of $("contents")?.querySelectorAll("a") ?? []) watching.observe($(link.hash.slice(1)));

const tip = document.createElement("p");
tip.id = "tip";
tip.hidden = true;
tip.ariaHidden = "true"; // a mark's name says the same
document.body.append(tip);

/** @param {Element | null} mark */
function point(mark) {
  document.querySelector(".mark.on")?.classList.remove("on");
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("on");
  tip.textContent = mark.getAttribute("aria-label");
  const { left, right, top, bottom } = mark.getBoundingClientRect();
  const x = Math.min(Math.max((left + right - tip.offsetWidth) / 2, 8), document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${x}px`;
  tip.style.top = `${top - tip.offsetHeight - 8 < 0 ? bottom + 8 : top - tip.offsetHeight - 8}px`;
}

for (const figure of document.querySelectorAll("svg.figure")) {
  const marks = /** @type {SVGElement[]} */ ([...figure.querySelectorAll(".mark")]);
  figure.setAttribute("role", "group");
  marks.forEach((mark, place) => {
    const title = mark.querySelector("title");
    mark.setAttribute("aria-label", title.textContent);
    mark.setAttribute("role", "img");
    mark.setAttribute("tabindex", place ? "-1" : "0");
    title.remove(); // else the browser's own hint stands beside ours
    mark.onfocus = () => point(mark);
    mark.onblur = () => point(null);
    mark.onpointerenter = () => point(mark);
    mark.onpointerleave = () => point(null);
    mark.onkeydown = (event) => {
      const last = marks.length - 1;
      const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") point(null);
      if (to === undefined) return;
      event.preventDefault();
      marks[Math.min(Math.max(to, 0), last)].focus();
    };
  });
}
addEventListener("scroll", () => point(document.activeElement?.closest(".mark") ?? null), { passive: true, capture: true });
