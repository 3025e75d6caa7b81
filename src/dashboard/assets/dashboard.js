/* Progressive enhancement: every page works without this script. */
;(() => {
  // The same form as on charts, whatever the browser's language.
  const format = { dateStyle: 'medium', timeStyle: 'short' }
  const chosenZone = document.documentElement.dataset.zone
  const zone = chosenZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  const dateTime = new Intl.DateTimeFormat('en-GB', { ...format, timeZone: zone })
  // The server shows days and times in the browser's time zone until the account chooses one.
  if (!chosenZone) {
    document.cookie = `hopcode-zone=${zone}; Path=/app; SameSite=Lax; Max-Age=31536000`
  }
  const status = document.getElementById('status')
  let clearing

  /** Shows a message for four seconds, also to screen readers. */
  const announce = (text) => {
    status.textContent = text
    clearTimeout(clearing)
    clearing = setTimeout(() => {
      status.textContent = ''
    }, 4000)
  }

  const countDown = (element) => {
    const left = Math.max(0, Math.ceil((Date.parse(element.dateTime) - Date.now()) / 1000))
    const [h, m, s] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60]
    const short = h > 0 ? `${h} h ${m} min` : m > 0 ? `${m} min ${s} s` : `${s} s`
    element.textContent = h >= 48 ? `${Math.floor(h / 24)} d ${h % 24} h` : short
  }

  /** Shows times in the account's time zone, and buttons that need scripts. */
  const enhance = () => {
    for (const element of document.querySelectorAll('time[datetime]:not([data-done])')) {
      if (element.dataset.countdown !== undefined) continue
      const time = new Date(element.dateTime)
      if (Number.isNaN(time.getTime())) continue
      element.dataset.done = ''
      const isAge = element.dataset.age !== undefined
      element.title = isAge ? dateTime.format(time) : element.textContent
      if (!isAge) element.textContent = dateTime.format(time)
    }
    for (const element of document.querySelectorAll('[data-copy], [data-needs-script]')) {
      element.hidden = false
    }
    for (const element of document.querySelectorAll('[data-without-script]')) element.hidden = true
  }

  /** Copies the value of an element. Returns whether the browser allowed it. */
  const copyValue = async (source) => {
    const text = source.value ?? source.textContent
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // The clipboard API is missing without a secure connection.
      const focused = document.activeElement
      const field = document.createElement('textarea')
      field.value = text
      document.body.append(field)
      field.select()
      const isCopied = document.execCommand('copy')
      field.remove()
      focused.focus()
      return isCopied
    }
  }

  const copy = async (button) => {
    const { copy: id } = button.dataset
    const source = id ? document.getElementById(id) : button.closest('tr').querySelector('.code')
    const isCopied = await copyValue(source)
    if (!isCopied) return announce('Select the text and copy it with the keyboard.')
    // A button with an icon keeps it.
    const hasText = button.childElementCount === 0
    button.dataset.label ??= button.getAttribute('aria-label')
    button.dataset.copied = ''
    button.setAttribute('aria-label', 'Copied')
    if (hasText) button.textContent = 'Copied'
    announce('Copied.')
    setTimeout(() => {
      delete button.dataset.copied
      button.setAttribute('aria-label', button.dataset.label)
      if (hasText) button.textContent = 'Copy'
    }, 2000)
  }

  /** Copies the QR code of a form as an image. Browsers need a secure connection for it. */
  const copyImage = async ({ dataset, form }) => {
    const fetchImage = async () => {
      const query = new URLSearchParams(new FormData(form))
      const response = await fetch(`${dataset.copyImage}?${query}`)
      if (!response.ok) throw new Error(`status ${response.status}`)
      return await response.blob()
    }
    try {
      // A promise, because Safari allows a copy only during the click.
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': fetchImage() })])
      announce('The image is copied.')
    } catch {
      announce('Your browser cannot copy this image. Download it instead.')
    }
  }

  /** Copies a new short URL when its message appears, without a click. */
  const copyNew = async () => {
    const toast = document.querySelector('[data-copy-now]')
    if (!toast) return
    const source = document.getElementById(toast.dataset.copyNow)
    delete toast.dataset.copyNow
    const title = toast.querySelector('h2')
    const isCopied = await copyValue(source)
    if (isCopied) title.textContent += ', and copied'
    announce(`${title.textContent}.`)
  }

  /** Saves a text of the page as a file, because the server does not send it again. */
  const save = ({ dataset }) => {
    const text = document.getElementById(dataset.save).textContent.replace(/\n/g, '\r\n')
    const link = document.createElement('a')
    // Spreadsheets recognize UTF-8 by the byte order mark.
    link.href = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' }))
    link.download = dataset.name
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }

  document.addEventListener('click', ({ target }) => {
    const button = target.closest?.(
      '[data-copy], [data-copy-image], [data-reveal], [data-save], [data-print]',
    )
    if (!button) return
    if (button.dataset.copy !== undefined) return void copy(button)
    if (button.dataset.copyImage) return void copyImage(button)
    if (button.dataset.save) return save(button)
    if (button.dataset.print !== undefined) return print()
    const input = document.getElementById(button.dataset.reveal)
    const shows = input.type === 'password'
    input.type = shows ? 'text' : 'password'
    button.textContent = shows ? 'Hide' : 'Show'
    button.setAttribute('aria-pressed', String(shows))
  })

  const chosenInGo = () => document.querySelector('#go-options [aria-selected=true]')

  /** Screen readers name the option that Enter opens. */
  const nameChosenInGo = () => {
    const chosen = chosenInGo()
    const field = document.getElementById('go-text')
    field?.setAttribute('aria-expanded', String(chosen !== null))
    if (chosen) field?.setAttribute('aria-activedescendant', chosen.id)
    else field?.removeAttribute('aria-activedescendant')
  }

  /** Enter was pressed before the options for the text arrived. */
  let isEnteredInGo = false

  const openEnteredInGo = () => {
    nameChosenInGo()
    if (!isEnteredInGo || !hasCurrentOptions()) return
    isEnteredInGo = false
    const dialog = document.getElementById('go')
    if (!dialog || dialog.open) chosenInGo()?.click()
  }

  const hasCurrentOptions = () =>
    document.getElementById('go-options')?.dataset.text ===
    document.getElementById('go-text')?.value.trim()

  /** Opens “Go to” over the page. The server sends it when it is wanted first. */
  const openGo = async () => {
    if (!document.getElementById('go')) {
      const response = await fetch('/app/go', { headers: { 'HX-Request': 'true' } })
      if (!response.ok || response.redirected) return location.assign('/app/go')
      const markup = await response.text()
      // Pressed twice before the first answer.
      if (document.getElementById('go')) return
      document.body.insertAdjacentHTML('beforeend', markup)
      htmx.process(document.getElementById('go'))
      nameChosenInGo()
    }
    const dialog = document.getElementById('go')
    if (!dialog.open) dialog.showModal()
    document.getElementById('go-text').select()
  }

  /** Chooses another option by its distance from the chosen one. */
  const moveInGo = (step) => {
    const options = [...document.querySelectorAll('#go-options [role=option]')]
    const at = options.findIndex((option) => option.ariaSelected === 'true')
    const next = options[(at + step + options.length) % options.length]
    if (!next) return
    options[at]?.setAttribute('aria-selected', 'false')
    next.setAttribute('aria-selected', 'true')
    next.scrollIntoView({ block: 'nearest' })
    nameChosenInGo()
  }

  document.addEventListener('keydown', (event) => {
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
    if (isCommand && event.key.toLowerCase() === 'k' && document.querySelector('[data-go]')) {
      event.preventDefault()
      return void openGo()
    }
    if (event.target.id !== 'go-text' || event.isComposing) return
    isEnteredInGo = event.key === 'Enter' && !hasCurrentOptions()
    // The form asks for the options at once.
    if (isEnteredInGo) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) {
      event.preventDefault()
      moveInGo(step)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      chosenInGo()?.click()
    }
  })

  document.addEventListener('click', (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey
    if (!isPlain || !event.target.closest?.('[data-go]')) return
    event.preventDefault()
    void openGo()
  })

  // The server stores the choice in a cookie for the next page.
  document.addEventListener('submit', ({ target, submitter }) => {
    if (target.dataset.themeForm === undefined) return
    const root = document.documentElement
    if (submitter.value === 'system') delete root.dataset.theme
    else root.dataset.theme = submitter.value
    const scheme = root.dataset.theme ?? 'light dark'
    document.querySelector('meta[name=color-scheme]').content = scheme
    for (const button of target.querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(button === submitter))
    }
  })

  /** Allows a form to be sent again. */
  const unlock = (form) => {
    delete form.dataset.sent
    for (const progress of form.querySelectorAll('[data-while-sent]')) progress.hidden = true
    for (const button of form.querySelectorAll('[aria-disabled]')) {
      button.removeAttribute('aria-disabled')
    }
  }

  // Prevents a second click on a slow form from sending it twice.
  document.addEventListener('submit', (event) => {
    const { target, submitter } = event
    // A menu of files: the page stays.
    if (submitter?.hasAttribute('formaction')) submitter.closest('[popover]')?.hidePopover()
    if (target.method !== 'post') return
    // The response is a file, and the page with its form stays.
    const downloads = submitter?.dataset.downloads
    if (downloads !== undefined) return announce(downloads || 'The file is being downloaded.')
    requestAnimationFrame(() => {
      for (const button of target.querySelectorAll('button[type=submit]')) {
        button.setAttribute('aria-disabled', 'true')
      }
    })
    for (const progress of target.querySelectorAll('[data-while-sent]')) progress.hidden = false
    if (target.dataset.sent && !target.matches('[hx-post]')) event.preventDefault()
    target.dataset.sent = 'yes'
    // A large response is a file, and no event reports that the page stays.
    if (target.dataset.mayDownload !== undefined) setTimeout(() => unlock(target), 10_000)
  })
  // A time is typed in the browser's time zone. The field that `data-utc` names gets it in UTC.
  document.addEventListener(
    'submit',
    ({ target }) => {
      for (const input of target.querySelectorAll('input[data-utc]')) {
        const time = new Date(input.value)
        const isTime = !Number.isNaN(time.getTime())
        document.getElementById(input.dataset.utc).value = isTime ? time.toISOString() : ''
      }
    },
    { capture: true },
  )

  // Live parts refresh only while the page is in use: an abandoned page must not keep its session
  // alive forever.
  const IDLE_MS = 10 * 60 * 1000
  let touchedAt = Date.now()
  for (const name of ['pointermove', 'pointerdown', 'keydown', 'wheel', 'focus']) {
    addEventListener(
      name,
      () => {
        touchedAt = Date.now()
      },
      { capture: true, passive: true },
    )
  }
  const isLive = ({ detail }) => detail.elt.dataset.live !== undefined
  document.addEventListener('htmx:beforeRequest', (event) => {
    if (!isLive(event)) return
    if (document.hidden || Date.now() - touchedAt > IDLE_MS) event.preventDefault()
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return
    touchedAt = Date.now()
    for (const element of document.querySelectorAll('[data-live]')) htmx.trigger(element, 'live')
  })

  addEventListener('pageshow', () => {
    for (const form of document.querySelectorAll('form[data-sent]')) unlock(form)
  })

  // After a click that gave a button no focus, htmx would send a change to its `formaction`.
  document.addEventListener('htmx:configRequest', ({ detail }) => {
    const { elt, triggeringEvent } = detail
    if (triggeringEvent?.type === 'input' && elt.matches('form')) {
      detail.path = elt.getAttribute('hx-get')
    }
  })

  // Browsers report the autofocus of a part that replaces another one. The word may be in a value.
  document.addEventListener('htmx:beforeSwap', ({ detail }) => {
    const field = /(<(?:input|textarea|select)(?:\s+[\w:-]+(?:="[^"]*")?)*?)\s+autofocus(?=[\s>])/g
    detail.serverResponse = detail.serverResponse.replace(field, '$1 data-focus')
  })
  // Before the new part is painted.
  document.addEventListener('htmx:afterSwap', () => {
    enhance()
    openEnteredInGo()
  })
  document.addEventListener('htmx:oobAfterSwap', () => {
    enhance()
    copyNew()
  })
  document.addEventListener('htmx:afterRequest', ({ detail }) => {
    const form = detail.elt.closest('form')
    if (form) unlock(form)
  })
  // A live part tries again by itself.
  document.addEventListener('htmx:responseError', (event) => {
    if (isLive(event)) return
    const wait = event.detail.xhr.getResponseHeader('Retry-After')
    announce(
      wait ? `Too much at once. Try again in ${wait} seconds.` : 'That did not work. Try again.',
    )
  })
  document.addEventListener('htmx:sendError', (event) => {
    if (!isLive(event)) announce('The service does not answer.')
  })

  enhance()
  // Where the row of tabs is longer than the screen, the current one is in view.
  const tab = document.querySelector('.side [aria-current]')
  if (tab) tab.closest('nav').scrollLeft = tab.offsetLeft - 64
  // An autofocus field takes precedence over the first invalid one.
  if (!document.querySelector('[autofocus]')) {
    document.querySelector('[aria-invalid=true]')?.focus()
  }
  const tick = () => {
    for (const element of document.querySelectorAll('time[data-countdown]')) countDown(element)
  }
  tick()
  setInterval(tick, 1000)
})()
