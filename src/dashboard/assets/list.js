/* The list of links by keyboard and with fewer clicks. Everything works without this script. */
;(() => {
  const byId = (id) => document.getElementById(id)
  document.body.insertAdjacentHTML('beforeend', byId('dialogs')?.textContent ?? '')
  for (const part of document.querySelectorAll('dialog [hidden]')) part.hidden = false

  const rows = () => [...document.querySelectorAll('.links tbody tr')]
  const linkOf = (row) => row?.querySelector('.name a')
  const currentRow = () => document.activeElement.closest('.links tbody tr')

  const addressOf = (part) => part.closest('tr').querySelector('.code').textContent

  /** Leaves two tab stops in each row: the link to its page, and Copy, which gets its name. */
  const reduceTabStops = () => {
    for (const button of document.querySelectorAll('.links [data-copy]:not([aria-label])')) {
      button.setAttribute('aria-label', `Copy short URL ${addressOf(button)}`)
    }
    for (const part of document.querySelectorAll('.links tbody .pick input, .links .acts a')) {
      part.tabIndex = -1
    }
  }

  /** Shows as many whole tags as fit, and the number of the others. */
  const fitTags = () => {
    for (const tags of document.querySelectorAll('.links .tags')) {
      const more = tags.querySelector('.more')
      const chips = [...tags.querySelectorAll('.tag:not(.more)')]
      more.dataset.rest ??= Number(more.textContent)
      const show = (count) => {
        const rest = chips.length - count + Number(more.dataset.rest)
        more.textContent = rest > 0 ? `+${rest}` : ''
        for (const [at, chip] of chips.entries()) chip.hidden = at >= count
      }
      const fits = (count) => {
        const [first] = chips
        const last = more.textContent ? more : chips[count - 1]
        return last.offsetTop === first.offsetTop && first.scrollWidth <= first.clientWidth
      }
      let count = chips.length
      show(count)
      while (count > 0 && !fits(count)) show(--count)
    }
  }
  addEventListener('resize', fitTags)

  const focusRow = (step) => {
    const all = rows()
    const at = all.indexOf(currentRow())
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step
    linkOf(all[Math.min(Math.max(next, 0), all.length - 1)])?.focus()
  }

  const focusField = (id) => {
    const field = byId(id)
    field?.focus()
    field?.select()
  }

  const isTyping = ({ target }) =>
    target.matches?.('input:not([type=checkbox]), textarea, select, [contenteditable]')

  /** By the key's character. Each returns false if there is nothing to do. */
  const SHORTCUTS = {
    '/': () => focusField('field-q'),
    n: () => focusField('field-url'),
    j: () => focusRow(1),
    k: () => focusRow(-1),
    c: () => currentRow()?.querySelector('[data-copy]').click(),
    x: () => currentRow()?.querySelector('.pick input').click(),
    q: () => currentRow()?.querySelector('[data-qr]').click(),
    '?': () => byId('shortcuts').showModal(),
  }

  const moveInRow = (event) => {
    const row = event.target.closest?.('.links tbody tr')
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (!row || !step) return
    const parts = [...row.querySelectorAll('.pick input, .name a, .acts button, .acts a')]
    parts[parts.indexOf(event.target) + step]?.focus()
    event.preventDefault()
  }

  /** The row from which Tab led to the actions. */
  let rowBefore
  /** Tab in a selected row leads to the actions on selected links, Shift+Tab from there back. */
  const moveToActions = (event) => {
    const first = document.querySelector('.batch :is(input, button)')
    const isBack = event.shiftKey && event.target === first && rowBefore?.isConnected
    const row = event.shiftKey ? undefined : currentRow()
    const isPicked = row?.querySelector('.pick input')?.checked
    if (!first || !(isBack || isPicked)) return
    event.preventDefault()
    if (isBack) return linkOf(rowBefore)?.focus()
    rowBefore = row
    first.focus()
  }

  document.addEventListener('keydown', (event) => {
    if (!byId('field-q') || document.querySelector('dialog[open]')) return
    if (event.key === 'Tab') moveToActions(event)
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return
    moveInRow(event)
    const shortcut = Object.hasOwn(SHORTCUTS, event.key) && SHORTCUTS[event.key]
    if (!shortcut) return
    event.preventDefault()
    shortcut()
  })

  // A URL that is pasted outside of all fields becomes a link.
  document.addEventListener('paste', (event) => {
    const form = byId('create')
    if (!form || isTyping(event) || document.querySelector('dialog[open]')) return
    const text = event.clipboardData.getData('text/plain').trim()
    if (!/^(https?:\/\/)?[^\s/]+\.[^\s]+$/i.test(text)) return
    event.preventDefault()
    form.elements.url.value = text
    form.elements.code.value = ''
    form.requestSubmit()
  })

  const showQr = (button) => {
    const dialog = byId('qr-dialog')
    const path = button.href.replace(/\/qr$/, '')
    const address = addressOf(button)
    const [image] = dialog.getElementsByTagName('img')
    image.src = `${path}/qr.svg`
    image.alt = `QR code of ${address}`
    dialog.querySelector('h2').textContent = address
    for (const link of dialog.querySelectorAll('a[data-file]')) {
      link.href = `${path}/${link.dataset.file}`
    }
    dialog.showModal()
  }

  document.addEventListener('click', (event) => {
    const { target } = event
    const button = target.closest?.('[data-qr], [data-close], [data-shortcuts]')
    if (!button || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    if (button.dataset.qr !== undefined) return showQr(button)
    if (button.dataset.shortcuts !== undefined) return byId('shortcuts').showModal()
    const dialog = button.closest('dialog')
    if (dialog) return dialog.close()
    button.closest('.toast').remove()
    byId('field-url')?.focus()
  })

  const showSelected = () => {
    const picked = document.querySelectorAll('.links tbody .pick input:checked').length
    const text = document.querySelector('.batch .selected')
    const isAll = document.querySelector('[name=all]')?.checked
    if (text) text.textContent = picked === 0 || isAll ? '' : `${picked} selected`
    const all = byId('pick-all')
    if (!all) return
    all.checked = picked > 0 && picked === rows().length
    all.indeterminate = picked > 0 && !all.checked
  }

  document.addEventListener('change', ({ target }) => {
    if (target.id === 'pick-all') {
      for (const row of rows()) row.querySelector('.pick input').checked = target.checked
    }
    const all = document.querySelector('[name=all]')
    if (target === all && all.checked) {
      for (const row of rows()) row.querySelector('.pick input').checked = true
    }
    if (all && target.closest('.pick') && !target.checked) all.checked = false
    if (target.closest('.pick, #all-matches')) showSelected()
  })

  let lastPicked
  // Shift+click on a checkbox gives all between it and the last one the same state.
  document.addEventListener('click', ({ target, shiftKey }) => {
    if (!target.matches?.('.links tbody .pick input')) return
    const all = rows().map((row) => row.querySelector('.pick input'))
    const [from, to] = [all.indexOf(lastPicked), all.indexOf(target)].sort((a, b) => a - b)
    lastPicked = target
    if (!shiftKey || from < 0) return
    for (const box of all.slice(from, to + 1)) box.checked = target.checked
    showSelected()
  })

  /** A field whose text changes is no longer refused. */
  document.addEventListener('input', ({ target }) => {
    if (!target.matches?.('#create [aria-invalid]')) return
    target.removeAttribute('aria-invalid')
    byId(`${target.id}-error`)?.remove()
  })

  const UNDO_MS = 30_000
  /** Removes messages when their Undo has stopped working. */
  const removeLater = () => {
    for (const toast of document.querySelectorAll('.toast[data-brief]:not([data-timed])')) {
      toast.dataset.timed = ''
      setTimeout(() => toast.remove(), UNDO_MS)
    }
  }

  // A reload does not repeat the message.
  const url = new URL(location)
  if (url.searchParams.has('done') && byId('links')) {
    for (const name of ['done', 'n', 'undo', 'to']) url.searchParams.delete(name)
    history.replaceState(history.state, '', url)
  }

  /** Asks for the hits of the rows. `dashboard.js` stops that while nobody looks at the page. */
  const LIVE = `<div id="live" data-live hx-get="/app/links/hits" hx-trigger="every 5s, live"
    hx-swap="none"></div>`
  if (byId('links')) {
    document.body.insertAdjacentHTML('beforeend', LIVE)
    htmx.process(byId('live'))
  }
  const countIn = (row) => row.querySelector('.hits').firstChild

  document.addEventListener('htmx:configRequest', (event) => {
    if (event.target.id !== 'live') return
    const all = rows()
    if (all.length === 0) event.preventDefault()
    const { parameters } = event.detail
    parameters.codes = all.map((row) => row.querySelector('[name=code]').value).join(',')
    if (all.every((row) => countIn(row).data === '0')) parameters.first = '1'
  })

  /** Marks each row once whose hits have changed. */
  const showHits = (markup) => {
    const answer = new DOMParser().parseFromString(markup, 'text/html')
    const counts = new Map(
      [...answer.querySelectorAll('data')].map((one) => [one.value, one.textContent]),
    )
    for (const row of rows()) {
      const count = counts.get(row.querySelector('[name=code]').value)
      if (count === undefined || countIn(row).data === count) continue
      countIn(row).data = count
      row.querySelector('.unit').textContent = count === '1' ? ' hit' : ' hits'
      row.classList.remove('followed')
      requestAnimationFrame(() => row.classList.add('followed'))
    }
  }
  document.addEventListener('htmx:afterRequest', ({ detail }) => {
    if (detail.elt.id === 'live' && detail.successful) showHits(detail.xhr.responseText)
  })

  const enhance = () => {
    const field = document.querySelector('[data-focus]')
    field?.removeAttribute('data-focus')
    field?.focus()
    reduceTabStops()
    fitTags()
    showSelected()
    removeLater()
  }
  document.addEventListener('htmx:afterSettle', enhance)
  addEventListener('pageshow', enhance)
  enhance()
})()
