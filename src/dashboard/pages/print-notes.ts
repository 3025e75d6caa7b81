import { type Sheet, type TextName, textsWithoutRoom } from '../../draw/sheet.ts'
import { findMissing } from '../../draw/typeface.ts'
import { type Html, html } from '../../lib/html.ts'
import * as parts from '../ui/components.ts'

/**
 * Says which texts of labels are printed by browsers only, or not at all. `hasAddress`: whether
 * labels have an address unless nobody could type it.
 */
export function leftOutNotes(
  { hasAddress }: { hasAddress: boolean },
  sheets: readonly Sheet[],
): Html {
  const labels = sheets.flatMap((sheet) => sheet.labels).filter((label) => label !== undefined)
  const untyped = labels.filter(({ address }) => hasAddress && address === '')
  const nowhere = [...sheets.flatMap(textsWithoutRoom), ...untyped.map(() => 'address' as const)]
  const foreign = labels.flatMap((label) =>
    (['title', 'address'] as const).filter((name) => findMissing(label[name]) !== undefined),
  )
  return html`${
    nowhere.length > 0 &&
    parts.notice(
      'note',
      html`<p>${counted(nowhere)} left out: the label has no room for the whole text, or nobody can
        type the address.</p>`,
    )
  }${
    foreign.length > 0 &&
    parts.notice(
      'note',
      html`<p>${counted(foreign)} in letters that our typeface lacks: the browser prints the whole
        text, and the PDF leaves it out.</p>`,
    )
  }`
}

/** As `3 titles and 1 address`. */
function counted(names: readonly TextName[]): string {
  const nouns = { title: 'titles', caption: 'captions', address: 'addresses' }
  const counts = Object.entries(nouns).map(([name, many]) => {
    const count = names.filter((one) => one === name).length
    return count > 0 ? parts.plural(count, name, many) : ''
  })
  return new Intl.ListFormat('en').format(counts.filter(Boolean))
}
