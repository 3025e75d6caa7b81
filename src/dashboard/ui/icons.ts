import chevronDown from 'lucide-static/icons/chevron-down.svg' with { type: 'text' }
import chevronLeft from 'lucide-static/icons/chevron-left.svg' with { type: 'text' }
import copy from 'lucide-static/icons/copy.svg' with { type: 'text' }
import ellipsis from 'lucide-static/icons/ellipsis.svg' with { type: 'text' }
import externalLink from 'lucide-static/icons/external-link.svg' with { type: 'text' }
import gripVertical from 'lucide-static/icons/grip-vertical.svg' with { type: 'text' }
import logOut from 'lucide-static/icons/log-out.svg' with { type: 'text' }
import monitor from 'lucide-static/icons/monitor.svg' with { type: 'text' }
import moon from 'lucide-static/icons/moon.svg' with { type: 'text' }
import pause from 'lucide-static/icons/pause.svg' with { type: 'text' }
import pencil from 'lucide-static/icons/pencil.svg' with { type: 'text' }
import play from 'lucide-static/icons/play.svg' with { type: 'text' }
import plus from 'lucide-static/icons/plus.svg' with { type: 'text' }
import qrCode from 'lucide-static/icons/qr-code.svg' with { type: 'text' }
import search from 'lucide-static/icons/search.svg' with { type: 'text' }
import shield from 'lucide-static/icons/shield.svg' with { type: 'text' }
import sun from 'lucide-static/icons/sun.svg' with { type: 'text' }
import trash from 'lucide-static/icons/trash-2.svg' with { type: 'text' }
import user from 'lucide-static/icons/user.svg' with { type: 'text' }
import x from 'lucide-static/icons/x.svg' with { type: 'text' }
import { Html } from '../../lib/html.ts'

/** Lucide icons, by their names there. */
const FILES = {
  'chevron-down': chevronDown,
  'chevron-left': chevronLeft,
  copy,
  ellipsis,
  'external-link': externalLink,
  'grip-vertical': gripVertical,
  'log-out': logOut,
  monitor,
  moon,
  pause,
  pencil,
  play,
  plus,
  'qr-code': qrCode,
  search,
  shield,
  sun,
  'trash-2': trash,
  user,
  x,
} as const

export type IconName = keyof typeof FILES

const ICONS = new Map(Object.entries(FILES).map(([name, file]) => [name, inline(file)]))

/**
 * An icon of 16 px in the color of its text. It is hidden from screen readers: the button or link
 * around it needs a text or an `aria-label`.
 */
export const icon = (name: IconName): Html => ICONS.get(name) as Html

/** The same icon where a page has many, as `iconSymbols` of its name somewhere in the page. */
export const repeatedIcon = (name: IconName): Html =>
  new Html(`<svg class="icon" aria-hidden="true"><use href="#i-${name}"/></svg>`)

/** The shapes of repeated icons, once in a page. */
export const iconSymbols = (names: readonly IconName[]): Html => {
  const symbols = names.map((name) =>
    icon(name)
      .toString()
      .replace(/^<svg[^>]*>/, `<symbol id="i-${name}" viewBox="0 0 24 24">`)
      .replace('</svg>', '</symbol>'),
  )
  return new Html(`<svg hidden>${symbols.join('')}</svg>`)
}

/** The shapes of a file. Size, stroke and color come from the class `icon`. */
function inline(file: string): Html {
  const shapes = /<svg[^>]*>([\s\S]*)<\/svg>/.exec(file)?.[1] ?? ''
  const short = shapes.replace(/\s*\n\s*/g, '').replaceAll(' />', '/>')
  return new Html(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${short}</svg>`)
}
