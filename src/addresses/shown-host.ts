import { domainToUnicode } from 'node:url'

/**
 * Hosts as people read them. A label that is encoded in Punycode is shown in Unicode only if its
 * letters belong to one script and do not all look like Latin ones: `xn--mnchen-3ya` is `münchen`,
 * and `xn--80ak6aa92e`, which looks like `apple`, stays as it is. The rules are those of UTS 39 and
 * of browsers, in their strictest form: no label mixes Latin with another script.
 */

/** Letters of Latin alphabets in use, without those that look like ASCII ones, as `ı` and `ɑ`. */
const LATIN = new RegExp(
  '^[-a-z0-9\\u00df-\\u00f6\\u00f8-\\u0130\\u0132-\\u0137\\u0139-\\u0148\\u014a-\\u017e' +
    '\\u01a1\\u01b0\\u01ce-\\u01dc\\u0219\\u021b\\u1e80-\\u1e85\\u1ea0-\\u1ef9]+$',
  'u',
)

/** Scripts of which no letter looks like a Latin one; Japanese and Korean write with several. */
const UNLIKE_LATIN = [
  /^[-0-9\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]+$/u,
  /^[-0-9\p{scx=Han}\p{scx=Hang}]+$/u,
  /^[-0-9\p{scx=Han}\p{scx=Bopo}]+$/u,
  ...'Arab Beng Deva Ethi Geor Gujr Guru Hebr Khmr Knda Laoo Mlym Mymr Orya Sinh Taml Telu Thai'
    .split(' ')
    .map((script) => new RegExp(`^[-0-9\\p{scx=${script}}]+$`, 'u')),
]

/** Scripts with letters that look like Latin ones, which a label must not consist of. */
const LIKE_LATIN = [
  { script: /^[-0-9\p{scx=Cyrl}]+$/u, lookalikes: /^[-0-9аысԁеԍһіюкјӏорԗԛѕԝхуъьҽпгѵѡвмнтбзвк]+$/u },
  { script: /^[-0-9\p{scx=Grek}]+$/u, lookalikes: /^[-0-9αβγειηικνρυωχοστζμ]+$/u },
  { script: /^[-0-9\p{scx=Armn}]+$/u, lookalikes: /^[-0-9ագզհյոսւքօռղնցբեթլպտ]+$/u },
]

/** Signs that are no letters, marks or digits could imitate a dot or a slash. */
const WORD = /^[-\p{L}\p{M}\p{Nd}]+$/u
/** Encoded labels of one host: a name with more is not written by people. */
const LABELS_MAX = 10

/** `host`: in ASCII, also with a port. */
export function readableHost(host: string): string {
  if (!/(^|\.)xn--/i.test(host)) return host
  const labels = host.split('.')
  return labels.length > LABELS_MAX ? host : labels.map(readableLabel).join('.')
}

function readableLabel(label: string): string {
  const [, name = '', port = ''] = /^([^:]*)(.*)$/s.exec(label) ?? []
  if (!/^xn--/i.test(name)) return label
  // Empty for a label that is no valid Punycode.
  const decoded = domainToUnicode(name)
  return decoded !== '' && WORD.test(decoded) && isOfOneScript(decoded) ? decoded + port : label
}

function isOfOneScript(label: string): boolean {
  return (
    LATIN.test(label) ||
    UNLIKE_LATIN.some((script) => script.test(label)) ||
    LIKE_LATIN.some(({ script, lookalikes }) => script.test(label) && !lookalikes.test(label))
  )
}
