/* The page of logo and presets. The service accepts PNG files only: an SVG is drawn as one here. */
;(() => {
  const BYTES_MAX = 60 * 1024
  /** Pixels of the longer side. A logo with much detail is too large a file at the first one. */
  const SIDES = [512, 384, 256]

  const dataUrlOf = (blob) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader()
      reader.onload = () => resolve(reader.result)
      reader.onerror = () => reject(reader.error)
      reader.readAsDataURL(blob)
    })

  const draw = (image, side) => {
    const canvas = document.createElement('canvas')
    const scale = side / Math.max(image.naturalWidth, image.naturalHeight)
    canvas.width = Math.max(1, Math.round(image.naturalWidth * scale))
    canvas.height = Math.max(1, Math.round(image.naturalHeight * scale))
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height)
    return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'))
  }

  /** Throws if the browser cannot draw it. */
  const pngOf = async (svg) => {
    const image = new Image()
    image.src = await dataUrlOf(new Blob([svg], { type: 'image/svg+xml' }))
    await image.decode()
    for (const side of SIDES) {
      const png = await draw(image, side)
      if (png.size <= BYTES_MAX) return png
    }
    throw new Error('too much detail')
  }

  document.addEventListener('change', async ({ target }) => {
    if (target.dataset.logo === undefined) return
    target.setCustomValidity('')
    const [file] = target.files
    if (!file || !/\.svg$/i.test(file.name)) return
    target.setCustomValidity('The SVG is being drawn.')
    try {
      const png = await pngOf(file)
      const chosen = new DataTransfer()
      chosen.items.add(new File([png], file.name.replace(/svg$/i, 'png'), { type: 'image/png' }))
      // Unless another file was chosen meanwhile.
      if (target.files[0] !== file) return
      target.files = chosen.files
      target.setCustomValidity('')
    } catch {
      target.setCustomValidity('Your browser cannot draw this SVG. Export it as a PNG.')
      target.reportValidity()
    }
  })
})()
