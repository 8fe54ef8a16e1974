// Waits until images and formulas are there, then reports on them. Text in code and formulas is no raw TeX.
// Numbers of equations that the formula is printed over, at the width that the window has now.
function overprinted() {
  const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  return [...document.querySelectorAll("div.math")].filter((block) => {
    const [number, formula] = [block.querySelector("span.eqno"), block.querySelector("mjx-container svg")];
    return number && formula && !apart(number.getBoundingClientRect(), formula.getBoundingClientRect());
  }).map((block) => block.querySelector("span.eqno").textContent.trim());
}

(async () => {
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const words = (element) => element.textContent.trim().slice(0, 80);

  const images = [...document.images];
  images.forEach((image) => { image.loading = "eager"; });
  await Promise.all(images.map((image) => Promise.race([image.decode().catch(() => null), wait(10000)])));
  if (window.MathJax && MathJax.startup && MathJax.startup.promise) { await MathJax.startup.promise; }

  const math = all("span.math, div.math");
  const delimiter = /\\[()\[\]]|\$[^$\s][^$]*\$/;
  const command = /\\(begin|end|frac|math[a-z]+|operatorname|varphi|psi|Lambda|bar|sum|sqrt)\b/;
  const raw = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const elsewhere = node.parentElement.closest("pre, code, script, style, noscript, textarea, mjx-container, .math");
    if (!elsewhere && (delimiter.test(node.data) || command.test(node.data))) {
      raw.push(node.data.trim().slice(0, 80));
    }
  }
  // MathJax marks an error as such, and an unknown command by red letters.
  const wrong = all('[data-mjx-error], [data-mml-node="merror"], mjx-container [fill="red"]');
  return {
    title: document.title,
    images: images.filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src),
    unrendered: math.filter((element) => !element.querySelector("mjx-container svg")).map(words),
    wrong: wrong.map((element) => element.getAttribute("data-mjx-error") || words(element.closest(".math") || element)),
    overprinted: overprinted(),
    empty: all("mjx-container svg").filter((svg) => !svg.getBoundingClientRect().width).length,
    raw: raw,
    formulas: math.length,
    pictures: images.length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ids: all("[id]").map((element) => element.id),
    links: all("a[href]").map((element) => element.href),
  };
})()
