/** The least difference in reflectance that ISO/IEC 15415 grades C: what readers often ask for. */
const DIFFERENCE_MIN = 0.4

/** What speaks against two colors of a QR code, both `#rrggbb`; undefined for good ones. */
export function scanWarning({ dark, light }: { dark: string; light: string }): string | undefined {
  const difference = luminance(light) - luminance(dark)
  if (difference >= DIFFERENCE_MIN) return undefined
  return difference < 0
    ? 'The modules are lighter than the background: many cameras cannot read this.'
    : 'The two colors are too alike: cameras may fail to read this.'
}

/** Relative luminance of WCAG 2.2: 0 is black, 1 is white. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
