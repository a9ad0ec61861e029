// The sign-in page, to which links to sessions also lead. It knows nothing but what it asks the server here: how
// users sign in on this server. Name and password are sent in a header, which no other site can make a browser do.

import { t } from "../js/base/language.js";

const main = /** @type {HTMLElement} */ (document.getElementById("sign-in"));
const LINK = "iact.link";
const PROBLEM = "iact_sign_in_problem";

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string>} [given]
 * @param {(Node|string)[]} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
function made(name, given = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(given)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

/**
 * @param {string} path
 * @param {string} method
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{status: number, told: Record<string, string>}>}
 */
async function asked(path, method, headers = {}) {
  try {
    const answer = await fetch(path, { method, headers, cache: "no-store", redirect: "error" });
    return { status: answer.status, told: await answer.json() };
  } catch {
    return { status: 0, told: { problem: t("The server can't be reached. Try again in a moment.") } };
  }
}

/** The link to open after sign-in, remembered in this tab only. */
const kept = {
  /** @returns {string} */
  get link() {
    try {
      return sessionStorage.getItem(LINK) ?? "";
    } catch {
      return "";
    }
  },
  set link(path) {
    try {
      if (path) sessionStorage.setItem(LINK, path);
      else sessionStorage.removeItem(LINK);
    } catch {
      // The browser stores nothing for us, so the link must be opened again.
    }
  },
};

/** After sign-in, go on to the link that was opened before, or to the page. */
function goOn() {
  location.replace(kept.link || "/");
}

/** Why the provider's answer did not sign the user in, from a cookie that lasts a minute. */
function problemOfReturn() {
  const found = document.cookie.split("; ").find((one) => one.startsWith(`${PROBLEM}=`));
  if (!found) return "";
  const bytes = atob(found.slice(found.indexOf("=") + 1).replaceAll("-", "+").replaceAll("_", "/"));
  return t(new TextDecoder().decode(Uint8Array.from(bytes, (one) => one.charCodeAt(0))));
}

/** @param {string} text */
function problem(text) {
  return made("p", { class: "problem", role: "alert" }, text);
}

/** @param {string} told */
function askForPassword(told) {
  const name = made("input", { name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", maxlength: "64", required: "" });
  const password = made("input", { name: "password", type: "password", autocomplete: "current-password", maxlength: "256", required: "" });
  const button = made("button", { class: "go", type: "submit" }, t("Sign in"));
  const wrong = problem(told);
  const form = made("form", {}, made("label", {}, t("Name"), name), made("label", {}, t("Password"), password), wrong, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    wrong.textContent = "";
    const bytes = new TextEncoder().encode(`${name.value.trim()}:${password.value}`);
    const given = btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
    const { status, told } = await asked("/sign-in", "POST", { Authorization: ["basic", given].join(" ") });
    if (status === 200) return goOn();
    button.disabled = false;
    wrong.textContent = t(told.problem);
    password.select();
  });
  main.append(form);
  name.focus();
}

/** @param {string} why */
async function signIn(why = "") {
  const { status, told } = await asked("/sign-in/ways", "GET");
  main.replaceChildren(made("h1", {}, t("Sign in to iact")));
  if (status !== 200) {
    main.append(problem(t(told.problem)));
  } else if (told.authenticator === "password") {
    if (why) main.append(made("p", {}, why));
    askForPassword("");
  } else if (told.authenticator === "oidc") {
    const failed = location.search === "?failed" ? problemOfReturn() : "";
    if (why) main.append(made("p", {}, why));
    if (failed) main.append(problem(failed));
    main.append(made("a", { class: "go", href: "/sign-in/provider" }, t("Sign in with {provider}", { provider: told.provider })));
  } else {
    const unsaid = t("The proxy in front of this server did not say who you are. Sign in there, and open this page again.");
    main.append(problem(told.problem ? t(told.problem) : unsaid));
  }
}

async function follow() {
  const path = location.pathname;
  main.replaceChildren(made("p", {}, t("Opening the session")));
  const { status, told } = await asked(path, "POST");
  kept.link = "";
  if (status === 200) return location.replace(`/#${told.session}`);
  if (status === 401) {
    kept.link = path;
    return signIn(t(told.problem));
  }
  main.replaceChildren(made("h1", {}, t("This link can't be opened")), problem(t(told.problem)));
}

if (location.pathname.startsWith("/link/")) await follow();
else if (location.search === "?done") goOn();
else await signIn();
