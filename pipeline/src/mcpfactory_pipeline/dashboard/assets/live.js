// Live updates: apply the server's events (docs/reference/dashboard.md) to the page.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const note = document.getElementById("live");
  if (!note || !window.EventSource) return;
  const source = new EventSource(note.dataset.source);
  const say = (text) => { if (note.textContent !== text) note.textContent = text; };
  const state = document.getElementById("state");

  source.addEventListener("open", () => say("Live: this page follows what happens."));
  source.addEventListener("error", () => {
    say(source.readyState === EventSource.CLOSED ? "No longer live: reload the page." : "The dashboard does not answer; trying again.");
  });
  source.addEventListener("state", (event) => {
    if (state) replaceContent(state, new DOMParser().parseFromString(event.data, "text/html").body);
    else refresh();
  });
  source.addEventListener("log", (event) => append(JSON.parse(event.data)));
  source.addEventListener("done", (event) => tail(event.data)?.remove());
  source.addEventListener("end", () => {
    source.close();
    document.getElementById("done")?.remove(); // the message that the run has started: the page shows the result now
    document.getElementById("work")?.remove(); // the running steps and the cancel button
    say("The run has ended.");
  });
  addEventListener("pagehide", () => source.close());
});

// Reload, but not during a navigation to another page, because that would cancel the navigation.
let leaving = -Infinity;
addEventListener("beforeunload", () => { leaving = performance.now(); });
function loadAgain() {
  if (performance.now() - leaving < 10_000) setTimeout(loadAgain, 1_000); // a download does not leave the page
  else location.reload();
}

function refresh() {
  const form = document.querySelector("form.filter");
  if (form) form.dispatchEvent(new Event("refresh"));
  else if (document.querySelector("[data-live=now], [data-live=question]")) reread();
  else loadAgain(); // a page without a list: no pending items, or no servers
}

// Reload the parts of a page without a list; one request at a time, and another one after changes in the meantime.
let reading = false;
let again = false;
async function reread() {
  again = reading;
  if (reading) return;
  reading = true;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (!answer.ok) { loadAgain(); return; }
    renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the event stream reports that the dashboard does not answer */ } finally { reading = false; }
  if (again) reread();
}

function tail(step) {
  return [...document.querySelectorAll("#tails > details")].find((one) => one.dataset.step === step);
}

function append({ step, text, fresh }) {
  let place = tail(step);
  if (!place) {
    place = document.createElement("details");
    place.open = true;
    place.dataset.step = step;
    const summary = document.createElement("summary");
    summary.textContent = step;
    const box = document.createElement("pre");
    box.className = "log"; // for the colors
    box.tabIndex = 0;
    box.setAttribute("role", "log");
    box.setAttribute("aria-label", step);
    box.append(document.createElement("code"));
    place.append(summary, box);
    document.getElementById("tails").append(place);
  }
  const box = place.querySelector("pre");
  const code = place.querySelector("code");
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  if (fresh) code.textContent = text;
  else code.append(text);
  if (atEnd) box.scrollTop = box.scrollHeight;
}
