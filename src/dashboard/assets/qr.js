/* Copies the QR code of a form as an image. Browsers need a secure connection for it. */
;(() => {
  const announce = (text) => {
    document.getElementById('status').textContent = text
  }

  const fetchImage = async (button) => {
    const query = new URLSearchParams(new FormData(button.form))
    const response = await fetch(`${button.dataset.copyImage}?${query}`)
    if (!response.ok) throw new Error(`status ${response.status}`)
    return await response.blob()
  }

  document.addEventListener('click', async ({ target }) => {
    const button = target.closest?.('[data-copy-image]')
    if (!button) return
    try {
      // A promise, because Safari allows a copy only during the click.
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': fetchImage(button) })])
      announce('The image is copied.')
    } catch {
      announce('Your browser cannot copy this image. Download it instead.')
    }
  })
})()
