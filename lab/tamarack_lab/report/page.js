// The report's page: draws each chart when it comes into view, in the scheme that the reader's
// system asks for, and sorts tables by the head that is pressed. It fetches nothing.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  const painted = (value, colours) => {
    if (typeof value === "string") return colours[value] ?? value;
    if (Array.isArray(value)) return value.map((one) => painted(one, colours));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, one]) => [key, painted(one, colours)]));
    }
    return value;
  };

  const draw = async (place) => {
    const { spec, canvas } = data.charts[place.id];
    const colours = data.tokens[dark.matches ? "dark" : "light"];
    drawn.get(place)?.finalize();
    drawn.set(place, null);
    try {
      const result = await vegaEmbed(place, painted(spec, colours), {
        config: painted(data.config, colours),
        renderer: canvas ? "canvas" : "svg",
        actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
        tooltip: { theme: dark.matches ? "dark" : "light" },
      });
      drawn.set(place, result);
      root.dataset.drawn = String([...drawn.values()].filter(Boolean).length);
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
      place.classList.add("failed");
      root.dataset.failed = String(Number(root.dataset.failed ?? 0) + 1);
      console.error(place.id, error);
    }
  };

  const paintKeys = () => {
    const colours = data.tokens[dark.matches ? "dark" : "light"];
    for (const swatch of document.querySelectorAll(".swatch")) {
      const hue = [...swatch.classList].find((name) => name.startsWith("hue"));
      swatch.style.setProperty("--hue", colours[`token:${hue}`]);
    }
  };

  const cellValue = (row, at) => {
    const text = row.cells[at].dataset.sort;
    if (text === undefined) return null;
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  };

  // Empty fields stay at the end whichever way it goes.
  const before = (a, b, way) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return way * (a - b);
    return way * String(a).localeCompare(String(b), undefined, { numeric: true });
  };

  const sort = (head) => {
    const table = head.closest("table");
    const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort(
      (a, b) => before(cellValue(a, head.cellIndex), cellValue(b, head.cellIndex), way));
    body.append(...rows);
  };

  const places = [...document.querySelectorAll(".chart")];
  paintKeys();
  root.dataset.charts = String(places.length);
  if (location.hash === "#all") {
    for (const one of document.querySelectorAll("details")) one.open = true;
    places.reduce((turn, place) => turn.then(() => draw(place)), Promise.resolve());
  } else {
    const near = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) {
        if (isIntersecting && !drawn.has(target)) draw(target);
      }
    }, { rootMargin: "400px" });
    for (const place of places) near.observe(place);
  }
  dark.addEventListener("change", () => {
    paintKeys();
    for (const place of drawn.keys()) draw(place);
  });
  document.addEventListener("click", (event) => {
    const head = event.target.closest("thead th");
    if (head) sort(head);
  });
  window.addEventListener("beforeprint", () => {
    for (const place of places) if (!drawn.has(place)) draw(place);
  });
})();
