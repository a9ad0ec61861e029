// Starts the page. This and early.js are the only scripts that change anything when they are loaded.

import { translatePage } from "./base/language.js";
import { Page } from "./page.js";

translatePage();
new Page().start();
