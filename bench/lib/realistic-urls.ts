import type { RandomBytes } from '../../src/lib/random.ts'

/**
 * URLs like those that people shorten: shop pages with campaign parameters, articles, documents.
 * The ordinal makes each URL unique.
 */
export function realisticUrl(random: () => number, ordinal: number): string {
  const word = () => WORDS[Math.floor(random() * WORDS.length)]
  const tag = ordinal.toString(36).padStart(5, '0')
  // Squared, so that a few hosts have most of the links.
  const host = `${WORDS[Math.floor(random() ** 2 * WORDS.length)]}-${word()}.example`
  const kind = random()
  if (kind < 0.4) {
    const campaign = `utm_source=${word()}&utm_medium=email&utm_campaign=${word()}-${word()}`
    return `https://shop.${host}/products/${word()}-${word()}?item=${tag}&${campaign}`
  }
  if (kind < 0.8) {
    const day = 1 + Math.floor(random() * 28)
    return `https://www.${host}/2025/06/${day}/${word()}-${word()}-${word()}-${word()}-${tag}.html`
  }
  const id = Math.floor(random() * 2 ** 32).toString(16)
  return `https://${host}/${word()}/d/${tag}${id}/view#${word()}`
}

/** Mulberry32 by Tommy Ettinger: evenly spread numbers from 0 to below 1, the same for a seed. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** `random` as a source of bytes: for test data, never for secrets. */
export const seededBytes =
  (random: () => number): RandomBytes =>
  (length) =>
    Uint8Array.from({ length }, () => random() * 256)

const WORDS = `
  amber anchor apple april arrow autumn bamboo basket beacon berry birch blossom bottle branch bread
  bridge bright bronze brook button cabin camera candle canvas canyon carpet castle cedar cherry
  circle citrus cloud clover coast cobalt coffee copper coral cotton cradle crystal daily dancer
  desert dolphin dragon early eagle echo ember emerald engine evening falcon feather fern field
  finch flame forest fountain fresh frost galaxy garden ginger glacier golden granite grape guitar
  harbor harvest hazel heather helmet honey horizon indigo island ivory jacket jasmine journey
  juniper kettle kitchen ladder lantern laurel lavender lemon lily linen lotus lunar magnet mango
  maple marble meadow melody mirror misty modern monday mountain music nectar needle north nutmeg
  oak ocean olive onyx orange orchard orchid paddle palm paper parade pearl pebble pepper piano
  pillow pine planet plum pocket poppy prairie quartz quiet rabbit rain raven ribbon river rocket
  rose saffron sail salmon sand scarlet season shadow silver simple sky snow solar spring spruce
  stone storm summer sunset swift table teal thunder tiger timber travel tulip tunnel turtle valley
  velvet violet walnut water weekly willow window winter wonder yellow zephyr
`
  .trim()
  .split(/\s+/)
