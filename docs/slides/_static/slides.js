"use strict";
// Slides are wide; on a phone held upright they are tall, and follow when it is turned. Paper wants a margin.
const onPaper = /print-pdf/.test(location.search);
function shape() {
  if (onPaper) return { width: 1280, height: 720, margin: 0.06 };
  return innerWidth < innerHeight ? { width: 640, height: 1180 } : { width: 1280, height: 720 };
}
addEventListener("resize", () => { if (Reveal.isReady() && !onPaper) Reveal.configure(shape()); });
// On paper (?print-pdf) no slide is ever "the one shown", so the embedded pages are asked for here.
Reveal.on("ready", () => {
  if (!onPaper) return;
  for (const frame of document.querySelectorAll("iframe[data-src]")) frame.src = frame.dataset.src;
});
