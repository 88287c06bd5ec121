// Keeps the part of the page with the id "live" current: the server says when it has changed, htmx fetches it again.
// On the page of a one-time link, it puts the code into the form; on that of a plan, the text of files. It also shows that
// a form was sent, keeps the end of a log in view, and has the keys that the page of the search names.
(() => {
  "use strict";
  const code = document.getElementById("link-code");
  if (code) code.value = location.hash.slice(1);
  for (const files of document.querySelectorAll("input[data-fills]")) {
    files.addEventListener("change", async () => {
      const texts = await Promise.all([...files.files].map((file) => file.text()));
      document.getElementById(files.dataset.fills).value = texts.join("\n---\n");
    });
  }
  const toEnd = () => document.querySelectorAll("[data-end]").forEach((log) => { log.scrollTop = log.scrollHeight; });
  toEnd();
  document.addEventListener("htmx:afterSettle", toEnd);
  document.addEventListener("submit", (event) => { if (event.submitter) event.submitter.classList.add("waits"); });
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll(".waits")) button.classList.remove("waits");
  });

  // Rows that are chosen stay so when the list is fetched again; one that has left the page is not chosen any more.
  const rowsOf = (form) => [...document.querySelectorAll(`input[type="checkbox"][form="${form}"]`)];
  const picked = new Map();
  const showPicked = () => {
    for (const label of document.querySelectorAll("[data-picked]")) {
      const rows = rowsOf(label.dataset.picked);
      const chosen = rows.filter((row) => row.checked);
      picked.set(label.dataset.picked, new Set(chosen.map((row) => row.value)));
      label.textContent = chosen.length;
      for (const all of document.querySelectorAll(`[data-picks="${label.dataset.picked}"]`)) {
        all.checked = rows.length > 0 && chosen.length === rows.length;
        all.indeterminate = chosen.length > 0 && !all.checked;
      }
    }
  };
  document.addEventListener("change", (event) => {
    const form = event.target.dataset.picks;
    if (form) for (const row of rowsOf(form)) row.checked = event.target.checked;
    showPicked();
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const [form, values] of picked) for (const row of rowsOf(form)) row.checked = values.has(row.value);
    showPicked();
  });
  window.addEventListener("pageshow", showPicked);

  const entries = () => [...document.querySelectorAll("main tbody th a, main .concerns li a, main .card h3 a, main .timeline li a")];
  const step = (by) => {
    const all = entries();
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) next.focus();
  };
  let leader = -Infinity;
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && isTyping) return event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    const isLed = event.timeStamp - leader < 1500;
    leader = -Infinity;
    if (isLed) {
      const link = document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`);
      if (link) location.assign(link.href);
      return undefined;
    }
    const field = document.getElementById("search");
    if (event.key === "g") leader = event.timeStamp;
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") location.assign("/ui/search");
    else if (event.key === "/" && field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
    return undefined;
  });

  if (!document.querySelector("[data-live]")) return;
  const lamp = document.getElementById("live-state");
  const pauseMin = 1000;
  const pauseMax = 15000;
  let source = null;
  let timer = 0;
  let pause = pauseMin;

  const show = (state, text) => {
    if (lamp && lamp.dataset.state !== state) {
      lamp.dataset.state = state;
      lamp.textContent = text;
    }
  };
  const refresh = () => window.htmx.trigger("#live", "changed");
  const close = () => {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  };
  const open = () => {
    // A hidden page needs no updates, and browsers allow only a few connections to one server.
    if (source || document.hidden) return;
    source = new EventSource(location.pathname + location.search);
    source.addEventListener("open", () => { pause = pauseMin; show("on", "Live"); });
    source.addEventListener("changed", refresh);
    source.addEventListener("error", () => {
      close();
      show("off", "Reconnecting");
      // If the session has ended, the answer to this request leads to the log-in page.
      refresh();
      timer = setTimeout(open, pause);
      pause = Math.min(pause * 2, pauseMax);
    });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  open();
})();
