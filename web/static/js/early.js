// Chooses the page's language and theme before anything is painted, so that nothing appears in another one first.
// A plain script in the head, because modules run after the first paint.

{
  const root = document.documentElement;
  let chosen = "";
  try {
    chosen = localStorage.getItem("iact.language") ?? "";
    root.dataset.theme = localStorage.getItem("iact.theme") ?? "";
  } catch {
    // The browser stores nothing for us, so its own settings count.
  }
  const spoken = ["en", "de"];
  const language = [chosen, ...navigator.languages.map((one) => one.split("-")[0])].find((one) => spoken.includes(one)) ?? "en";
  root.lang = language;
  if (language !== "en") {
    root.classList.add("translating");
    // Whatever goes wrong, the page is not kept hidden for long.
    setTimeout(() => root.classList.remove("translating"), 3000);
  }
}
