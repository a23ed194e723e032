// One worker of the example: makes thumbnails from the store it is given, until its parent lets go of it.
import { rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'piecework'
import sharp from 'sharp'

sharp.concurrency(1) // Four of these processes share the cores.
const pw = await connect(process.argv[2])
const worker = pw.queue('thumbnails').work(makeThumbnail, { concurrency: 2, stopOn: ['SIGINT', 'SIGTERM'] })
worker.on('done', ({ id }) => console.log(`acked ${id}`))
process.stdin.resume().once('end', () => pw.close())

/** May run twice for one picture, even at once: each delivery writes a file of its own and renames it, whole. */
async function makeThumbnail({ picture, width, output }, { id, number }) {
  console.log(`started ${id}`)
  const partOf = (delivery) => `${output}.${delivery}.part`
  const image = await sharp(picture).resize({ width }).webp().toBuffer()
  await writeFile(partOf(number), image, { flush: true })
  await rename(partOf(number), output)
  for (let earlier = 1; earlier < number; earlier++) await rm(partOf(earlier), { force: true })
}
