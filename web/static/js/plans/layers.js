// Lays out the steps of a plan in layers, each step below all steps that it needs, with few
// crossings. After Sugiyama, Tagawa and Toda (1981): longest paths make the layers, barycentres their order, and a line
// that passes a layer has its own place in it, so that no line is drawn through an unrelated step.

const SWEEPS = 6;

/**
 * @typedef {object} Placed
 * @property {Map<string, {layer: number, place: number}>} at `place` counts from 0 in the layer
 * @property {string[][]} layers including the places of lines that pass
 * @property {Map<string, string[]>} routes the places that a line passes, by `routeOf`
 */

/**
 * The name of the line between two steps.
 * @param {string} need
 * @param {string} id
 */
export function routeOf(need, id) {
  return `${need}\0${id}`;
}

/**
 * @param {Map<string, {needs: string[]}>} steps
 * @returns {Placed}
 */
export function layered(steps) {
  const depth = depths(steps);
  /** @type {string[][]} */ const layers = [];
  for (const id of steps.keys()) {
    const layer = depth.get(id) ?? 0;
    (layers[layer] ??= []).push(id);
  }
  /** @type {Map<string, string[]>} */ const routes = new Map();
  /** @type {Map<string, string[]>} */ const above = new Map();
  /** @type {Map<string, string[]>} */ const below = new Map();
  for (const [id, { needs }] of steps) {
    for (const need of needs) {
      if (!steps.has(need)) continue;
      const [from, to] = [depth.get(need) ?? 0, depth.get(id) ?? 0];
      const passed = Array.from({ length: Math.max(0, to - from - 1) }, (_, index) => `${routeOf(need, id)}\0${index}`);
      passed.forEach((place, index) => layers[from + 1 + index].push(place));
      if (passed.length) routes.set(routeOf(need, id), passed);
      const chain = [need, ...passed, id];
      for (let index = 1; index < chain.length; index += 1) {
        above.set(chain[index], [...(above.get(chain[index]) ?? []), chain[index - 1]]);
        below.set(chain[index - 1], [...(below.get(chain[index - 1]) ?? []), chain[index]]);
      }
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const place = places(layers);
    for (const layer of down ? layers : [...layers].reverse()) {
      const neighbours = down ? above : below;
      const weight = new Map(layer.map((id, index) => [id, mean((neighbours.get(id) ?? []).map((one) => place.get(one) ?? 0), index)]));
      layer.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0));
      layer.forEach((id, index) => place.set(id, index - layer.length / 2));
    }
  }
  const at = new Map(layers.flatMap((layer, number) => layer.map((id, place) => [id, { layer: number, place }])));
  return { at, layers, routes };
}

/** @param {string[][]} layers */
function places(layers) {
  return new Map(layers.flatMap((layer) => layer.map((id, index) => /** @type {[string, number]} */ ([id, index - layer.length / 2]))));
}

/**
 * @param {number[]} values
 * @param {number} otherwise
 */
function mean(values, otherwise) {
  return values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : otherwise;
}

/**
 * The longest path to each step. A step in a cycle, which no plan has, counts as a beginning.
 * @param {Map<string, {needs: string[]}>} steps
 */
function depths(steps) {
  /** @type {Map<string, number>} */ const found = new Map();
  const left = new Map([...steps].map(([id, { needs }]) => [id, needs.filter((need) => steps.has(need)).length]));
  /** @type {Map<string, string[]>} */ const after = new Map();
  for (const [id, { needs }] of steps) for (const need of needs) after.set(need, [...(after.get(need) ?? []), id]);
  const ready = [...left].filter(([, count]) => count === 0).map(([id]) => id);
  for (const id of ready) {
    const depth = found.get(id) ?? 0;
    found.set(id, depth);
    for (const next of after.get(id) ?? []) {
      found.set(next, Math.max(found.get(next) ?? 0, depth + 1));
      left.set(next, (left.get(next) ?? 1) - 1);
      if (left.get(next) === 0) ready.push(next);
    }
  }
  return found;
}
