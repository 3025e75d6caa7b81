/* The page /docs. The key of the API stays until the tab is closed, also when the page reloads. */
const KEY = 'hopcode.api-key'

const remembersKey = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (authorize) => (sent) => {
          sessionStorage.setItem(KEY, sent.apiKey?.value ?? '')
          return authorize(sent)
        },
        logout: (logout) => (names) => {
          sessionStorage.removeItem(KEY)
          return logout(names)
        },
      },
    },
  },
})

/** The path of an endpoint is within a button, where a link has no place. */
const hasNoLinksInButtons = ({ React: { createElement } }) => ({
  wrapComponents: {
    DeepLink:
      () =>
      ({ text }) =>
        createElement('span', null, text),
  },
})

/** Names the introduction and the fields of trial requests for screen readers. */
const nameParts = () => {
  const introduction = document.querySelector('.information-container > section')
  if (introduction) introduction.ariaLabel ??= 'Introduction'
  for (const field of document.querySelectorAll('.opblock :is(input, select, textarea)')) {
    if (field.labels?.length > 0 || field.ariaLabel) continue
    field.ariaLabel = field.closest('[data-param-name]')?.dataset.paramName ?? 'Request body'
  }
}
new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true })

const { documentElement: root } = document
const dark = matchMedia('(prefers-color-scheme: dark)')
const showTheme = () => {
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches
  root.classList.toggle('dark-mode', isDark)
}
showTheme()
dark.addEventListener('change', showTheme)

const ui = SwaggerUIBundle({
  url: '/docs/json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: -1,
  plugins: [remembersKey, hasNoLinksInButtons],
  onComplete() {
    // Trial requests go to the page's own origin: no other one is reachable from here.
    ui.getSystem().oas3Actions.setSelectedServer('/')
    const key = sessionStorage.getItem(KEY)
    if (key) ui.preauthorizeApiKey('apiKey', key)
  },
})
