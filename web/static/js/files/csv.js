// Comma-separated values (RFC 4180), read in one pass.

const QUOTE = "\"";

/**
 * @param {string} text
 * @param {string} separator
 * @returns {string[][]}
 */
export function rows(text, separator) {
  /** @type {string[][]} */ const found = [];
  /** @type {string[]} */ let row = [];
  const given = text.replace(/^\u{feff}/u, "");
  const end = () => {
    const isBlank = row.length === 1 && row[0] === "";
    if (!isBlank) found.push(row);
    row = [];
  };
  for (let at = 0; at <= given.length;) {
    let cell = "";
    if (given[at] === QUOTE) {
      [cell, at] = quoted(given, at);
      at = next(given, at, separator);
    } else {
      const stop = next(given, at, separator);
      cell = given.slice(at, stop);
      at = stop;
    }
    row.push(cell);
    if (given[at] === separator) {
      at += 1;
      continue;
    }
    end();
    at += given[at] === "\r" && given[at + 1] === "\n" ? 2 : 1;
  }
  return found;
}

/**
 * Where an unquoted cell ends.
 * @param {string} text
 * @param {number} at
 * @param {string} separator
 */
function next(text, at, separator) {
  let stop = at;
  while (stop < text.length && text[stop] !== separator && text[stop] !== "\n" && text[stop] !== "\r") stop += 1;
  return stop;
}

/**
 * A quoted cell, and where its quotes end. What follows up to the next separator is dropped.
 * @param {string} text
 * @param {number} at
 * @returns {[string, number]}
 */
function quoted(text, at) {
  const pieces = [];
  let from = at + 1;
  for (;;) {
    const close = text.indexOf(QUOTE, from);
    if (close < 0) return [pieces.join("") + text.slice(from), text.length];
    pieces.push(text.slice(from, close));
    if (text[close + 1] !== QUOTE) return [pieces.join(""), close + 1];
    pieces.push(QUOTE);
    from = close + 2;
  }
}
