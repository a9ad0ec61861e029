// Files for the tasks of an empty page, so that they can be tried without any of one's own. Fetched with the first of them.

import { t } from "../base/language.js";

/** Orders and income of two years, by month. @type {[number, [number, number][]][]} */
const SALES = [
  [2024, [[412, 18540], [398, 17910], [441, 19845], [437, 19665], [452, 20340], [460, 20700], [389, 17505], [371, 16695], [455, 20475], [471, 21195], [690, 31050], [742, 33390]]],
  [2025, [[430, 19780], [419, 19274], [466, 21436], [463, 21298], [118, 5428], [481, 22126], [402, 18492], [395, 18170], [488, 22448], [503, 23138], [731, 33626], [779, 35834]]],
];

/** Three offers for the same work, each in other words. @type {[string, string][]} */
const OFFERS = [
  ["north", t("# North Woodwork\n\nEight oak shelves, oiled, mounted: 3,480 including tax. Delivery in six weeks. Five years of guarantee on wood and fittings. 30 % of the price is due with the order.\n")],
  ["brook", t("# Brook & Daughters\n\nWe offer the eight shelves in oak at 390 each, plus 420 for mounting; tax is included. We can deliver within three weeks. Guarantee: two years.\n")],
  ["vale", t("# Vale Interiors\n\nShelves (8), oak veneer, mounted: 2,650 net, tax of 19 % is added. Delivery in ten working days. Guarantee of one year, which can be extended to three for 150.\n")],
];

/**
 * @param {"sales"|"offers"} which
 * @returns {File[]}
 */
export function samples(which) {
  if (which === "sales") return [new File([table()], `${which}.csv`, { type: "text/csv" })];
  return OFFERS.map(([name, text]) => new File([text], `offer-${name}.md`, { type: "text/markdown" }));
}

/** The sales as CSV. */
function table() {
  const lines = SALES.flatMap(([year, months]) => months.map(([orders, income], index) => [`${year}-${String(index + 1).padStart(2, "0")}`, orders, income].join(",")));
  return `${[["month", "orders", "income"].join(","), ...lines].join("\n")}\n`;
}
