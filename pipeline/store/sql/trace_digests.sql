SELECT digest FROM traces FINAL WHERE tenant = {tenant:String}
