// Asks for the numbers once a second and has them shown.
"use strict";

const EVERY_MS = 1000;
const PATIENCE_MS = 5000;

const model = new Model();
const charts = new Charts();
let span = 300;
let isPaused = false;
let timer = null;

function setState(state, text) {
  document.body.dataset.state = state;
  put("pulse", text);
}

function complain(text) {
  const place = document.getElementById("trouble");
  place.hidden = !text;
  place.textContent = text || "";
}

async function ask() {
  const response = await fetch("?json", {
    cache: "no-store",
    credentials: "same-origin",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

async function turn() {
  const begun = performance.now();
  try {
    const sample = await ask();
    const last = model.samples[model.samples.length - 1];
    if (model.take(sample)) {
      writeJournal(sample, last);
      draw();
    }
    complain(null);
    setState("live", "live");
  } catch (error) {
    setState("lost", "no answer");
    complain(`No numbers from the server since ${model.now
      ? clockText(model.now.sample.now / 1000) : "the page was opened"}: ${error.message}.`);
  }
  schedule(Math.max(100, EVERY_MS - (performance.now() - begun)));
}

function draw() {
  showAll(model);
  charts.draw(model, span);
}

function schedule(ms) {
  clearTimeout(timer);
  if (!isPaused && !document.hidden) timer = setTimeout(turn, ms);
}

document.getElementById("pause").addEventListener("click", (event) => {
  isPaused = !isPaused;
  event.currentTarget.setAttribute("aria-pressed", String(isPaused));
  event.currentTarget.textContent = isPaused ? "Go on" : "Pause";
  if (isPaused) setState("paused", "paused");
  schedule(0);
});

for (const button of document.querySelectorAll("[data-span]")) {
  button.addEventListener("click", () => {
    span = Number(button.dataset.span);
    for (const other of document.querySelectorAll("[data-span]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    if (model.now) draw();
  });
}

document.addEventListener("visibilitychange", () => schedule(0));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  charts.forget();
  if (model.now) draw();
});

turn();
