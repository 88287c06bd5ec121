// The terminal of a pod: xterm.js on a WebSocket that speaks Kubernetes' channels, whose number is the first byte of a
// message. It starts when the button is pressed, and at no other time.
(() => {
  "use strict";
  const form = document.getElementById("terminal");
  if (!form) return;
  const state = document.getElementById("terminal-state");
  const screen = document.getElementById("screen");
  const [stdin, stdout, stderr, error, resize] = [0, 1, 2, 3, 4];
  const pieceMax = 16384;
  const encoder = new TextEncoder();
  let stop = () => {};

  // A message of a member must not show other words than it has.
  const reordering = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  const code = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const say = (text) => { state.textContent = text.replace(reordering, code); };
  const messageOf = (data) => {
    try {
      const status = JSON.parse(new TextDecoder().decode(data));
      return status.status === "Success" ? "The command has ended." : status.message || "The command has failed.";
    } catch {
      return new TextDecoder().decode(data);
    }
  };

  form.querySelector("button").disabled = false; // without this script it would only load the page again
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation();
    stop();
    screen.replaceChildren();
    const query = new URLSearchParams(new FormData(form));
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${form.dataset.socket}?${query}`,
      ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    socket.binaryType = "arraybuffer";
    const terminal = new window.Terminal({ cursorBlink: false, fontSize: 13, scrollback: 5000, screenReaderMode: true });
    const fit = new window.FitAddon.FitAddon();
    terminal.loadAddon(fit);
    terminal.open(screen);
    const send = (channel, data) => {
      if (socket.readyState !== WebSocket.OPEN) return;
      const message = new Uint8Array(data.length + 1);
      message[0] = channel;
      message.set(data, 1);
      socket.send(message);
    };
    const sendSize = () => send(resize, encoder.encode(JSON.stringify({ Width: terminal.cols, Height: terminal.rows })));
    const refit = () => fit.fit();
    let end = "";
    terminal.onData((text) => {
      const data = encoder.encode(text);
      for (let at = 0; at < data.length; at += pieceMax) send(stdin, data.subarray(at, at + pieceMax));
    });
    terminal.onBinary((text) => send(stdin, Uint8Array.from(text, (character) => character.charCodeAt(0))));
    terminal.onResize(sendSize);
    window.addEventListener("resize", refit);
    stop = () => {
      window.removeEventListener("resize", refit);
      socket.close();
      terminal.dispose();
    };
    say("Connecting");
    socket.addEventListener("open", () => {
      say("Connected. Leaving the page ends the command.");
      refit();
      sendSize();
      terminal.focus();
    });
    socket.addEventListener("message", ({ data }) => {
      const bytes = new Uint8Array(data);
      if (bytes[0] === stdout || bytes[0] === stderr) terminal.write(bytes.subarray(1));
      else if (bytes[0] === error) end = messageOf(bytes.subarray(1));
    });
    socket.addEventListener("close", ({ wasClean }) => {
      terminal.options.disableStdin = true;
      say(end || (wasClean ? "The connection has ended." : "The connection was lost, or refused. Log in again if it stays so."));
    });
  });
})();
