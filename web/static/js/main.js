// Starts the page. This script and early.js are the only ones that change anything when they are loaded.

import { translatePage } from "./base/language.js";
import { Page } from "./page.js";

translatePage();
new Page().start();
