import type { RequestHeaders } from '../http/context.ts'

/** The page of a short link that does not redirect, for a person with a browser. */

type VisitorProblem = 'notFound' | 'disabled' | 'expired' | 'limited' | 'failed'

interface Text {
  title: string
  text: string
}

const STATUSES: Readonly<Record<VisitorProblem, number>> = {
  notFound: 404,
  disabled: 410,
  expired: 410,
  limited: 429,
  failed: 500,
}

const TEXTS = {
  en: {
    notFound: {
      title: 'This link does not exist',
      text: 'Check the address for typing errors, or ask the person who gave it to you.',
    },
    disabled: { title: 'This link is no longer available', text: 'It has been turned off.' },
    expired: {
      title: 'This link has expired',
      text: 'It was valid for a limited time or number of visits.',
    },
    limited: {
      title: 'Too many requests',
      text: 'Many links were opened from your network. Wait a minute and try again.',
    },
    failed: {
      title: 'This link cannot be opened right now',
      text: 'Something went wrong on our side. Try again in a few minutes.',
    },
  },
  de: {
    notFound: {
      title: 'Diesen Link gibt es nicht',
      text: 'Prüfen Sie die Adresse auf Tippfehler oder fragen Sie, wer sie Ihnen gegeben hat.',
    },
    disabled: { title: 'Dieser Link ist nicht mehr verfügbar', text: 'Er wurde abgeschaltet.' },
    expired: {
      title: 'Dieser Link ist abgelaufen',
      text: 'Er war nur eine bestimmte Zeit oder für eine Anzahl von Aufrufen gültig.',
    },
    limited: {
      title: 'Zu viele Anfragen',
      text: 'Aus Ihrem Netz wurden viele Links geöffnet. Versuchen Sie es in einer Minute erneut.',
    },
    failed: {
      title: 'Dieser Link lässt sich gerade nicht öffnen',
      text: 'Bei uns ist ein Fehler aufgetreten. Versuchen Sie es in einigen Minuten erneut.',
    },
  },
  fr: {
    notFound: {
      title: 'Ce lien n’existe pas',
      text: 'Vérifiez l’adresse ou demandez à la personne qui vous l’a donnée.',
    },
    disabled: { title: 'Ce lien n’est plus disponible', text: 'Il a été désactivé.' },
    expired: { title: 'Ce lien a expiré', text: 'Sa durée ou son nombre de visites était limité.' },
    limited: {
      title: 'Trop de requêtes',
      text: 'Beaucoup de liens ont été ouverts depuis votre réseau. Réessayez dans une minute.',
    },
    failed: {
      title: 'Ce lien ne peut pas être ouvert pour le moment',
      text: 'Une erreur s’est produite de notre côté. Réessayez dans quelques minutes.',
    },
  },
  es: {
    notFound: {
      title: 'Este enlace no existe',
      text: 'Compruebe la dirección o pregunte a la persona que se la dio.',
    },
    disabled: { title: 'Este enlace ya no está disponible', text: 'Ha sido desactivado.' },
    expired: {
      title: 'Este enlace ha caducado',
      text: 'Era válido durante un tiempo o un número de visitas limitado.',
    },
    limited: {
      title: 'Demasiadas solicitudes',
      text: 'Se han abierto muchos enlaces desde su red. Inténtelo de nuevo dentro de un minuto.',
    },
    failed: {
      title: 'Este enlace no se puede abrir en este momento',
      text: 'Se ha producido un error por nuestra parte. Inténtelo de nuevo en unos minutos.',
    },
  },
  ja: {
    notFound: {
      title: 'このリンクは存在しません',
      text: 'アドレスに誤りがないか確認するか、リンクの提供元にお問い合わせください。',
    },
    disabled: { title: 'このリンクは利用できなくなりました', text: 'リンクは無効にされています。' },
    expired: {
      title: 'このリンクは期限切れです',
      text: '有効期間または利用回数の上限に達しました。',
    },
    limited: {
      title: 'リクエストが多すぎます',
      text: 'お使いのネットワークから多数のリンクが開かれました。1分後にもう一度お試しください。',
    },
    failed: {
      title: '現在このリンクを開けません',
      text: 'サーバーで問題が発生しました。数分後にもう一度お試しください。',
    },
  },
  zh: {
    notFound: { title: '此链接不存在', text: '请检查地址是否有误，或联系提供链接的人。' },
    disabled: { title: '此链接已不可用', text: '该链接已被停用。' },
    expired: { title: '此链接已过期', text: '该链接的有效期或访问次数已用完。' },
    limited: { title: '请求过多', text: '您的网络打开了大量链接。请一分钟后重试。' },
    failed: { title: '暂时无法打开此链接', text: '我们的服务出现了问题。请几分钟后重试。' },
  },
} as const satisfies Record<string, Record<VisitorProblem, Text>>

type Language = keyof typeof TEXTS

const STYLE = [
  ':root{color-scheme:light dark}',
  'body{margin:0;min-height:100vh;display:grid;place-items:center;',
  'font:17px/1.5 system-ui,sans-serif;background:#f5f7fa;color:#17202e}',
  'main{max-width:28rem;padding:2rem;text-align:center}',
  'h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}',
  'p{margin:0}',
  '@media(prefers-color-scheme:dark){body{background:#0e1420;color:#e8edf5}}',
].join('')

/** Programs get JSON, and visitors a page in their language. */
const VARY = 'Accept, Accept-Language, Sec-Fetch-Dest'

const STYLE_HASH = new Bun.CryptoHasher('sha256').update(STYLE).digest('base64')

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html;charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
  Vary: VARY,
  'Cache-Control': 'no-store',
}

/**
 * Whether a browser navigates: `Sec-Fetch-Dest: document`, or without that header an `Accept` that
 * names text/html with a higher weight than JSON.
 */
export function isNavigation(headers: RequestHeaders): boolean {
  const destination = headers.get('sec-fetch-dest')
  if (destination !== null) return destination === 'document'
  const weights = weightsOf(headers.get('accept') ?? '')
  const html = weights.get('text/html') ?? 0
  return html > 0 && html > (weights.get('application/json') ?? 0)
}

/** The page in the visitor's language. The caller adds headers such as `Retry-After`. */
export function visitorPage(problem: VisitorProblem, headers: RequestHeaders) {
  const language = languageOf(headers.get('accept-language') ?? '')
  const { title, text } = TEXTS[language][problem]
  const body = `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
<main><h1>${title}</h1><p>${text}</p></main>
</html>
`
  return { status: STATUSES[problem], headers: Object.assign({}, PAGE_HEADERS), body }
}

/** In place of a page. Never cached: the code may be created later. */
export const redirectNavigation = (location: string) => ({
  status: 302,
  headers: { Location: location, Vary: VARY, 'Cache-Control': 'no-store' },
  body: '',
})

/** The preferred one of the languages with texts; English if none is accepted. */
function languageOf(acceptLanguage: string): Language {
  const ranked = [...weightsOf(acceptLanguage)].sort(([, a], [, b]) => b - a)
  for (const [tag, weight] of ranked) {
    const [primary = ''] = tag.split('-')
    if (weight > 0 && isLanguage(primary)) return primary
  }
  return 'en'
}

const isLanguage = (tag: string): tag is Language => Object.hasOwn(TEXTS, tag)

/** More entries than any browser sends. Further ones are ignored, to limit the time. */
const ENTRIES_MAX = 32

/** The entries of a header and their weights from 0 to 1 (RFC 9110, section 12.4.2). */
function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const entry of header.toLowerCase().split(',', ENTRIES_MAX)) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim())
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = q === undefined ? 1 : Number(q.slice(2))
    if (name !== '' && weight >= 0 && weight <= 1) weights.set(name, weight)
  }
  return weights
}
