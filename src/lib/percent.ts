/** Decodes the percent-encoding of a URL once. Undefined for a malformed text. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
