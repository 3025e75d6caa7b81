import { domainToASCII, domainToUnicode } from 'node:url'
import { decodePercent } from '../lib/percent.ts'

/** Words without any of these have one form. */
const HAS_FORMS = /%[0-9a-f]{2}|xn--|[^\0-\x7f]/i
/** A longer text is compared as it was typed. */
const LENGTH_MAX = 500

/**
 * Ways to write a part of a URL: letters or Punycode in its host, letters or percent-encoded
 * bytes in the rest. The first form is the text itself; there are at most six.
 */
export function urlForms(text: string): string[] {
  if (!HAS_FORMS.test(text) || text.length > LENGTH_MAX) return [text]
  const plain = (decodePercent(text) ?? text).replace(
    /xn--[a-z0-9-]+/gi,
    (label) => domainToUnicode(label) || label,
  )
  const letters = plain.normalize('NFC')
  const [, host = '', rest = ''] = /^((?:https?:\/\/)?[^/]*)(.*)$/is.exec(letters) ?? []
  const hosts = [host, host.replace(/[^/.:@]*[^\0-\x7f][^/.:@]*/g, punycode)]
  const forms = hosts.flatMap((one) => [one + rest, one + encodeRest(rest)])
  // Without a slash, the text may be a part of the path as well.
  return [...new Set([text, ...forms, encodeRest(letters)])]
}

const punycode = (label: string): string => domainToASCII(label) || label

const encodeRest = (text: string): string =>
  text.toWellFormed().replace(/[^\0-\x7f]+/g, encodeURIComponent)
