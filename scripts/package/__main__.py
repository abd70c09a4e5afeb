from maki import main

main()
