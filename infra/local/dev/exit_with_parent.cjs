// Loaded with `node --require` in front of a program that must not outlive the process that started it.
// The parent keeps the write end of this process's stdin and never writes: when the parent is gone, however it
// went, the pipe ends. (Works on every system; Linux's PR_SET_PDEATHSIG follows a thread, not a process.)
"use strict";
process.stdin.on("error", () => {});
process.stdin.on("close", () => {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), 3000).unref();
});
process.stdin.resume();
process.stdin.unref(); // watching must not keep the program alive
