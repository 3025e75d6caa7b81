import { z } from 'zod'

const Address = z.string().meta({ format: 'uri' })

export const QrImageView = z.object({
  code: z.string().regex(/^[A-Z0-9]{6,20}$/),
  url: z.string().nullable(),
  short_url: Address,
  qr_url: Address,
  qr_storage_url: Address,
})
export type QrImageView = z.infer<typeof QrImageView>
