// Before anything is painted: which language the page speaks and how it looks, so that nothing stands there in another
// one first. A plain script in the head, since modules run after the first paint.

{
  const root = document.documentElement;
  let chosen = "";
  try {
    chosen = localStorage.getItem("iact.language") ?? "";
    root.dataset.theme = localStorage.getItem("iact.theme") ?? "";
  } catch {
    // A browser that keeps nothing for us: what it says of itself counts.
  }
  const spoken = ["en", "de"];
  const language = [chosen, ...navigator.languages.map((one) => one.split("-")[0])].find((one) => spoken.includes(one)) ?? "en";
  root.lang = language;
  if (language !== "en") {
    root.classList.add("translating");
    // Whatever goes wrong on the way, the page is not kept hidden for long.
    setTimeout(() => root.classList.remove("translating"), 3000);
  }
}
