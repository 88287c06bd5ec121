// Keeps the part of the page with the id "live" current: the server says when it has changed, htmx fetches it again.
// On the page of a one-time link, it puts the code into the form; on that of a plan, the text of files.
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
