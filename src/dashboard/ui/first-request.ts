import type { KeyScope } from '../../accounts/store.ts'
import { type Html, html } from '../../lib/html.ts'
import { copyButton } from './components.ts'

/** A command that tries a new key. Only for the response that shows the key. */
export const firstRequest = (baseUrl: string, key: string, scope: KeyScope = 'write'): Html => html`
  <h3 id="command-label">Try it in a terminal</h3>
  <pre id="command" tabindex="0"
    aria-labelledby="command-label"><code>${commandOf(baseUrl, key, scope)}</code></pre>
  <p>${copyButton('command', 'the command')}</p>`

/** `key` has only letters, digits and `_`, and `baseUrl` is a URL without quotes. */
function commandOf(baseUrl: string, key: string, scope: KeyScope): string {
  if (scope === 'read') return `curl ${baseUrl}/api/list -H 'X-API-Key: ${key}'`
  return [
    `curl ${baseUrl}/api/shorten \\`,
    `  -H 'X-API-Key: ${key}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"url":"https://example.com/"}'`,
  ].join('\n')
}
