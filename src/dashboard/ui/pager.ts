import { attributes, type Html, html } from '../../lib/html.ts'
import { count } from './components.ts'

/** Rows of a page of a list. */
export const PAGE_SIZE = 50
const PAGE_MAX = 1_000_000_000

/** The number of a page from its `?page=`, from 1. */
export const pageNumber = (text: string | undefined): number =>
  /^[1-9]\d*$/.test(text ?? '') ? Math.min(Number(text), PAGE_MAX) : 1

export const lastPage = (total: number): number => Math.max(1, Math.ceil(total / PAGE_SIZE))

/** Links to the previous and the next page; nothing if there is only one. */
export function pager(page: number, total: number, pathOf: (page: number) => string): Html | '' {
  const last = lastPage(total)
  if (last === 1) return ''
  const step = (label: string, to: number, rel: string) =>
    to < 1 || to > last
      ? html`<span></span>`
      : html`<a ${attributes({ class: 'button plain', href: pathOf(to), rel })}>${label}</a>`
  return html`
    <nav class="pager" aria-label="Pages">
      ${step('← Previous', page - 1, 'prev')}
      <span>Page ${count(page)} of ${count(last)}</span>
      ${step('Next →', page + 1, 'next')}
    </nav>`
}
