/* Choose a protocol, toggle layers, filter and enlarge cards. The page reads well without it. */
"use strict";
for (const choice of document.querySelectorAll("#protocol input")) {
  choice.addEventListener("change", () => {
    for (const view of document.querySelectorAll(".view")) view.hidden = view.dataset.protocol !== choice.value;
  });
}
const controls = document.getElementById("controls");
if (controls) {
  const cards = [...document.querySelectorAll(".card")].map((card) => ({
    card,
    kind: card.dataset.kind,
    slices: JSON.parse(card.dataset.slices),
    text: card.textContent.toLowerCase(),
  }));
  const update = () => {
    const kind = controls.querySelector("[name=kind]:checked").value;
    const words = controls.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...controls.querySelectorAll("[name=slice]")].filter((choice) => choice.value);
    let shown = 0;
    for (const item of cards) {
      const fits = (!kind || item.kind === kind)
        && wanted.every((choice) => item.slices[choice.dataset.slice] === choice.value)
        && words.every((word) => item.text.includes(word));
      item.card.hidden = !fits;
      shown += fits;
    }
    document.getElementById("shown").value = shown;
    document.getElementById("nothing").hidden = shown > 0;
    const root = document.getElementById("cards");
    for (const layer of controls.querySelectorAll("[name=layer]")) {
      root.classList.toggle("off-" + layer.value, !layer.checked);
    }
  };
  controls.addEventListener("input", update);
  controls.addEventListener("submit", (event) => event.preventDefault());
  for (const { card } of cards) {
    const button = card.querySelector(".enlarge");
    button.addEventListener("click", () => {
      const large = card.classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.textContent = large ? "Reduce" : "Enlarge";
      card.scrollIntoView({ block: "nearest" });
    });
  }
}
