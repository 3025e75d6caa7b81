import { type Html, html } from '../../lib/html.ts'
import type { CurrentUser } from '../auth/guard.ts'
import { form, hiddenFields } from './components.ts'
import { type IconName, icon } from './icons.ts'

const THEMES: readonly { value: string; label: string; iconName: IconName }[] = [
  { value: 'system', label: 'System', iconName: 'monitor' },
  { value: 'light', label: 'Light', iconName: 'sun' },
  { value: 'dark', label: 'Dark', iconName: 'moon' },
]

/** The menu under the e-mail address. The browser opens and closes it, also without scripts. */
export function accountMenu(user: CurrentUser): Html {
  const { email } = user.account
  const signOut = html`<button class="menu-item">${icon('log-out')} Sign out</button>`
  return html`
    <div class="current-user">
      <button type="button" class="current-user-button" popovertarget="account-menu">
        <span class="initial" data-initial="${email.slice(0, 1).toUpperCase()}"></span>
        <span class="email">${email}</span>
        ${icon('chevron-down')}
      </button>
      <div id="account-menu" class="menu" popover>
        <p class="menu-title">${email}</p>
        <a class="menu-item" href="/app/account">${icon('user')} Account</a>
        <a class="menu-item" href="/app/account#security">${icon('shield')} Security</a>
        ${themeForm(user)}
        ${form(user, '/app/sign-out', signOut, { class: 'menu-last' })}
      </div>
    </div>`
}

function themeForm(user: CurrentUser): Html {
  const { path, theme } = user
  const choices = THEMES.map(({ value, label, iconName }) => {
    const isChosen = value === (theme ?? 'system')
    return html`<button name="theme" value="${value}"
      aria-pressed="${String(isChosen)}">${icon(iconName)} ${label}</button>`
  })
  return form(user, '/app/theme', [path !== undefined && hiddenFields({ next: path }), choices], {
    class: 'theme',
    role: 'group',
    'aria-label': 'Theme',
    'data-theme-form': true,
    'hx-post': '/app/theme',
    'hx-swap': 'none',
  })
}
